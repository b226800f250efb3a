// Reads signed events. The type of event tells the type of its data.
import { Webhook } from "standardwebhooks";

import type { webhooks } from "./schema.js";

export type EventType = keyof webhooks;
export type Event<T extends EventType = EventType> = {
  [K in T]: webhooks[K]["post"]["requestBody"]["content"]["application/json"];
}[T];

// read verifies a message with the secret of the endpoint and returns the event. It throws if
// the signature does not fit or the message is older than five minutes.
export function read(secret: string, body: string, headers: Record<string, string>): Event {
  return new Webhook(secret).verify(body, headers) as Event;
}

// describe says in a line what happened.
export function describe(event: Event): string {
  switch (event.event_type) {
    case "labtest.order.updated":
      return `order ${event.data.id} is ${event.data.last_event.status}`;
    case "daily.data.heartrate.created":
      return `${event.data.data.length} heart rates`;
    case "provider.connection.created":
      return `${event.data.provider.slug} is connected`;
    default:
      return event.event_type;
  }
}
