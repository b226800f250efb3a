// Package catalogue answers one question: what can a team order, at which laboratory and
// through which account?
//
// A [Source] has labs, lab tests, markers and accounts; [StaticCatalog] is one in memory,
// read from a file. A [Service] adds the lab tests that teams make, resolves a [Selection]
// to one lab test of one lab, and searches the compendium, which lists the markers of
// different labs that measure the same quantity.
package catalogue

// Files in the order of reading: each uses those before it.
//
//	number.go enum.go errors.go labtest.go instructions.go query.go source.go selection.go order_set.go
//	service.go compendium.go static_catalog.go static_catalog_csv.go static_catalog_query.go teamtest.go
//	rows.go
