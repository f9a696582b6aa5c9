// The TypeScript SDK of haft.
export type * from "./api.js";
export { HaftError, type ErrorDetails } from "./error.js";
export type { EventContext, EventData, HaftEvent, OutsideWork } from "./events.js";
export { Haft, type CallOptions, type EventsOptions, type RequestOptions, type RouteRequest } from "./haft.js";
export type { HaftOptions } from "./http.js";
export type { CallContext, Handler, ServeOptions } from "./serve.js";
