// Package labreport turns a lab report that exists already, a PDF, a scan, a photo, into structured results
// matched to LOINC codes, and points at the place on the page where it read each field.
//
//	reports, err := labreport.New(store.ParsingJobs(), files, users, extractor, &labreport.Options{Environment: healthlab.Sandbox})
//	job, err := reports.Create(ctx, team, upload)
//	done, err := reports.Get(ctx, team, job.ID)
//
// [Service.Run] is the background work. The pure part needs no service:
//
//	data, reason := labreport.NewReader(nil).Read(pages)
//
// What a host calls and gets:
//
//   - [Job] is one report on its way through the [Service]: staged, read, perhaps reviewed by a person,
//     completed or failed.
//   - [Data] is what was read; [Evidence] says from where: page, box and confidence of every field.
//   - [Reader] calls no model and no network, and it never guesses a digit: what it cannot read it leaves
//     out or marks with a low confidence.
//   - [TextExtractor] returns the words of a file: a PDF's text, or the output of an OCR engine. An adapter
//     implements it.
//   - [loinc.Catalogue] finds codes for names. [loinc.Embedded] holds common laboratory terms;
//     [loinc.Load] reads the published table instead.
//
// It orders no tests and does not handle the results of orders: laboratories send those as data, while this package
// reads documents.
package labreport

// Files in the order of reading: each uses those before it.
//
//	given_names.go dates.go words.go value.go bounds.go page.go labels.go columns.go rules.go section.go
//	files.go data.go grammar.go not_a_result.go content.go read.go rows.go correct.go job.go interfaces.go
//	service.go job_rows.go person.go usual_range.go metadata.go regions.go attach.go decimal_point.go
//	results.go review.go labname.go patients.go
