// Package fhir serves the data of a team as FHIR R4, read only, with the profiles of US Core 5.0.1: Patient,
// Observation, Device and Consent, and with a laboratory DiagnosticReport, ServiceRequest, Specimen, Appointment,
// Provenance, Coverage, Organization, Practitioner and DocumentReference.
//
//	h, err := fhir.Handler(fhir.Config{
//		API: s.API(), URL: "https://api.example.com/fhir/r4",
//		Health: s.Health, Aggregate: s.Aggregate, Orders: s.Orders, Documents: s.Documents,
//	})
//	mux.Handle("/fhir/r4/", http.StripPrefix("/fhir/r4", h))
//
// Config.Exports adds bulk exports ($export) and the Group of the team, and Config.Tokens the tokens of SMART
// backend services (package smart). Package fhirlab connects a laboratory that speaks FHIR.
//
// Requests are authenticated, limited and recorded like those of adapters/httpapi ([httpapi.Extend]). A caller that
// may act for one user only reads the data of that user only.
//
// # Values
//
// An Observation of a device is the mean or the sum of a day or an hour, in the person's time zone, over the sources
// that package aggregate merges, rounded to three decimal places. On request it is a day of values, one for each
// minute. Laboratory results have the numbers and units of the laboratory. A unit has a UCUM code only if the
// laboratory's text for it is known. A missing element is left out, or has a data-absent-reason where the profile
// requires the element.
//
// # Ids and versions
//
// The id of a resource is derived from its subject, and its version from its content, so that two processes give the
// same. Patient, Device and observations of devices have no lastUpdated, because the store does not record that
// time.
package fhir

// Files in the order of reading: each uses those before it.
//
//	outcome.go token.go datatypes.go format.go handler.go search.go observation.go measurement.go patient.go
//	kind.go specimen.go consent.go capability.go party.go provenance.go laboratory.go appointment.go
//	document.go operation_params.go everything.go device.go group.go type_filter.go export.go coverage.go
//	reader.go reader_queries.go export_deleted.go include.go result_params.go
