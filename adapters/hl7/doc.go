// Package hl7 connects a laboratory that speaks HL7 v2: orders go out as OML^O21 (or
// ORM^O01), results come in as ORU^R01.
//
// [Backend] is an orders.LabBackend. It sends through a [Sender], most often an
// mllp.Client, and it is the mllp.Handler of what the laboratory sends:
//
//	lab := hl7.New(mllp.NewClient("lab.example.com:2575", nil), hl7.NewMemoryJournal(), &hl7.Options{
//		Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: "NORTHLAB"},
//	})
//	desk, err := orders.New(store, users, catalogue, lab, &orders.Options{Environment: healthlab.Production})
//	go mllp.NewServer(lab, nil).Serve(ctx, listener)
//
// Names to know:
//
//   - [Options] says how one laboratory speaks: names, codes, zone, version.
//   - [Journal] keeps what was sent and what came; what came is acknowledged after it
//     was kept. [NewMemoryJournal] forgets with the process, [OpenFileJournal] does not.
//   - [Read] turns a result message into plain values, without keeping anything.
//   - [Backend.Review] lists what came and belongs to no order for certain. It is never
//     attached to one by guessing; [Backend.Attach] does it when a person says so.
//   - [Folder] exchanges messages as files.
//
// Results of one order are gathered over all its messages: a laboratory may send what
// is new or everything so far, twice, and in any order. What this package is not: a
// store of documents (see [Documents]), and not an integration engine.
package hl7
