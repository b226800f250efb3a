// A typed client of the API. schema.d.ts is generated from the contract: npm run generate.
import createClient, { type Client } from "openapi-fetch";

import type { paths } from "./schema.js";

export function connect(url: string, key: string): Client<paths> {
  return createClient<paths>({ baseUrl: url, headers: { "x-service-api-key": key } });
}

// ok returns the data of an answer, or fails with the problem that the service named.
export async function ok<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok || data === undefined) {
    throw new Error(`${response.status} ${JSON.stringify(error)}`);
  }
  return data;
}
