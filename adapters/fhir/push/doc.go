// Package push sends what a team has of its people to FHIR R4 servers: Observations of devices and apps, lab
// orders with their results and reports, and rows of continuous queries.
//
//	reader, err := fhir.NewReader(fhir.Config{URL: url, Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders})
//	pipelines, err := ehr.New(stores.Pipelines(), sealer, &ehr.Options{Resources: fhir.Resources()})
//	pusher, err := push.New(pipelines, reader, nil)
//	err = pusher.Run(ctx)
//
// Names to know: Pusher, Options. Package ehr keeps pipelines, the queue and dead letters.
//
// # What is sent
//
// Transactions of at most 100 resources of one person. A Patient, an Organization or a Practitioner is created
// unless the server has it (ifNoneExist); every other resource is a conditional update by its identifier, whose
// system is the address of its type at this service and whose value is its id there. So a transaction that is
// sent again changes nothing. What a read no longer gives becomes entered-in-error.
//
// # Order and loss
//
// One worker pushes a person at a time. It reads the person as a reader of FHIR does and sends what differs from
// what the server has taken, so that the state that a server has in the end is the one that a read gives,
// whatever was sent twice. A request that takes longer than [Options].Timeout is given up; a server that commits
// it after it has committed a later one has the older state until the resource changes again.
//
// # Refusals
//
// A refusal is a status of 4xx with an OperationOutcome. The transaction is then sent in halves until the refused
// resource is alone; it becomes a dead letter, and the others are taken. Any other answer, and none, pauses the
// pipeline (Retry-After, else 10 seconds to 15 minutes).
package push
