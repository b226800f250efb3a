// Package ehr stores the FHIR servers to which a team pushes the data of its people, the data that is still
// to be pushed, and the resources that a server has refused.
//
//	rows := ehr.NewRows(s)
//	service, err := ehr.New(rows, sealer, &ehr.Options{Resources: fhir.Resources()})
//	pipeline, err := service.Create(ctx, team, ehr.NewPipeline{Title: "clinic", BaseURL: "https://ehr.example.com/fhir", Token: token})
//
// Names to know: Pipeline, Service, Rows, Task, DeadLetter.
//
// # What is stored
//
// A change of health data ([Rows.Changed]) or an event of an order ([Rows.Read]) marks the person for every
// pipeline of the team, in the transaction of the change. A mark names the data that may have changed: package
// adapters/fhir/push reads the person as a reader of FHIR does, compares versions with those that the server
// has ([Rows.Sent]), and sends the resources that differ. So the queue has one row for a person and pipeline, however long
// a server is down, and an older state is never sent after a newer one.
package ehr
