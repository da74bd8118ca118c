// Names for the API's types that the console uses.
import type { components } from "./schema";
import type { Data } from "./client";

type Schemas = components["schemas"];

export type Document = Schemas["L1Item"];
export type DocumentDetail = Data<"/api/v1/documents/{doc_id}", "get">;
export type Node = DocumentDetail["l2"][number];
export type Chunk = Data<"/api/v1/documents/{doc_id}/chunks", "get">["items"][number];
export type Task = Data<"/api/v1/documents/tasks/{task_id}", "get">;
export type SearchAnswer = Data<"/api/v1/search", "post">;
export type SearchResult = SearchAnswer["results"][number];
export type Summary = NonNullable<SearchAnswer["summary"]>;
export type Explain = NonNullable<SearchAnswer["explain"]>;
export type Space = Data<"/api/v1/spaces/{space}", "get">;
export type User = Data<"/api/v1/auth/me", "get">;
export type Category = Data<"/api/v1/knowledge/categories", "get">["categories"][number];
export type Readiness = Schemas["Readiness"];
export type Stats = Data<"/api/v1/knowledge/stats", "get">;
/** An expression over the fields of documents. */
export type Expression = Schemas["FilterExprInput"];
