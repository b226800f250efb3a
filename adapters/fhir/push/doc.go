// Package push sends the data of a team's persons to FHIR R4 servers: Observations of devices and apps, lab orders
// with their results and reports, and rows of continuous queries.
//
//	reader, err := fhir.NewReader(fhir.Config{URL: url, Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders})
//	pipelines, err := ehr.New(stores.Pipelines(), sealer, &ehr.Options{Resources: fhir.Resources()})
//	pusher, err := push.New(pipelines, reader, nil)
//	err = pusher.Run(ctx)
//
// Names to know: Pusher, Options. Package ehr stores pipelines, the queue and dead letters.
//
// # What is sent
//
// Transactions have at most 100 resources of one person. A Patient, an Organization or a Practitioner is created
// unless the server has it (ifNoneExist). Every other resource is a conditional update by its identifier, whose
// system is the address of its type at this service and whose value is its id there. So a transaction that is sent
// again changes nothing. A resource that a read no longer returns is updated to entered-in-error.
//
// # Order and loss
//
// Only one worker pushes a person at a time. It reads the person's current resources and sends those that differ
// from what the server has accepted, so that in the end the server has the current state, even if some were sent
// twice. A request that takes longer than [Options].Timeout is given up. If the server commits it after a later
// request, it has the older state until the resource changes again.
//
// # Refusals
//
// A refusal is a status of 4xx with an OperationOutcome. The transaction is then sent in halves until the refused
// resource is alone. That resource becomes a dead letter, and the others are accepted. Any other answer, and none,
// pauses the pipeline (for Retry-After, else for 10 seconds to 15 minutes).
package push
