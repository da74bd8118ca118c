// Uses the server through types that were generated from its OpenAPI document.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import createClient from "openapi-fetch";

import type { components, paths } from "./generated.js";

const url = process.env["LKR_URL"];
const password = process.env["LKR_ADMIN_PASSWORD"];
assert(url !== undefined && password !== undefined);

const anonymous = createClient<paths>({ baseUrl: url });

async function loggedIn() {
  const { data, error } = await anonymous.POST("/api/v1/auth/login", { body: { username: "admin", password: password! } });
  assert(data, JSON.stringify(error));
  return createClient<paths>({ baseUrl: url!, headers: { Authorization: `Bearer ${data.data.access_token}` } });
}

async function ended(taskId: string): Promise<components["schemas"]["TaskItem"]> {
  for (let attempt = 0; attempt < 600; attempt++) {
    const { data } = await anonymous.GET("/api/v1/documents/tasks/{task_id}", { params: { path: { task_id: taskId } } });
    assert(data);
    if (data.data.status === "done" || data.data.status === "failed") return data.data;
    await sleep(100);
  }
  throw new Error(`task ${taskId} does not end`);
}

const client = await loggedIn();
const text = "# Moons\n\nJupiter has many moons.\n\n## Europa\n\nEuropa hides an ocean under its ice.\n";
const accepted = await client.POST("/api/v1/documents", { body: { text, title: "Moons", source: "client:moons" } });
assert(accepted.data && accepted.data.code === 0);
const task = await ended(accepted.data.data.task_id);
assert.equal(task.status, "done", JSON.stringify(task));

const found = await anonymous.POST("/api/v1/search", { body: { query: "ocean under ice", top_k: 3, mode: "layered" } });
const best = found.data?.data.results[0];
assert(best, JSON.stringify(found.error));
assert.equal(best.doc_id, task.doc_id);

const path = { doc_id: best.doc_id };
const detail = await anonymous.GET("/api/v1/documents/{doc_id}", { params: { path } });
assert.equal(detail.data?.data.l1.title, "Moons");
const read = await anonymous.GET("/api/v1/documents/{doc_id}/text", { params: { path } });
assert.equal(read.data?.data.text, text);

const deleted = await client.DELETE("/api/v1/documents/{doc_id}", { params: { path } });
assert.equal(deleted.data?.data.deleted.l1, 1);
const gone = await anonymous.GET("/api/v1/documents/{doc_id}", { params: { path } });
assert.equal(gone.response.status, 404);
assert.equal(gone.error?.code, 1004);
