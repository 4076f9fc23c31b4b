// Start a run, decide what it asks, and print how it ended. The types are made from the JSON Schema.
import { Client, Connection } from "@temporalio/client";
import { randomUUID } from "node:crypto";

import type { TaskContract } from "./contract.js";
import type { Decision } from "./decision.js";
import type { RunResult } from "./result.js";

interface Pending {
  id: string;
  request: { act: string; target: string; preview: string };
}

async function fix(client: Client, contract: TaskContract, mayHappen: (asked: Pending) => boolean) {
  const run = await client.workflow.start<(contract: TaskContract) => Promise<RunResult>>("AgentRun", {
    args: [contract],
    taskQueue: "io-harness",
    workflowId: `fix-${randomUUID()}`,
  });
  const ended = run.result();
  let over = false;
  ended.finally(() => (over = true)).catch(() => {});
  while (!over) {
    for (const asked of await run.query<Pending[]>("pending_approvals")) {
      console.log(`${asked.request.act} ${asked.request.target}\n${asked.request.preview}`);
      const verdict = mayHappen(asked) ? "approve" : "deny";
      // An update, not the signal: the answer says whether the decision was taken.
      const decision: Decision = { request: asked.id, verdict, by: "typescript" };
      await run.executeUpdate<string, [Decision]>("submit_decision", { args: [decision] });
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return ended;
}

const [path, goal, verify, model] = process.argv.slice(2);
if (!path || !goal || !verify) throw new Error("usage: start.js PATH GOAL VERIFY [MODEL AS JSON]");
const contract: TaskContract = {
  goal,
  workspace: { kind: "directory", path },
  verification: { kind: "command", run: verify },
  policy: "unattended",
  landing: { mode: "apply", approve: "ask" },
  model: model ? JSON.parse(model) : { provider: "anthropic", name: "claude-sonnet-5-5" },
};
const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? "localhost:7233" });
const result = await fix(new Client({ connection }), contract, (asked) => asked.request.act === "land");
console.log(`${result.outcome}: ${result.reason}`);
await connection.close();
