// Package loinc finds the LOINC term that a printed row of a lab report means.
//
// The names to know:
//
//   - [Embedded] has about 1,100 common laboratory terms; [Load] reads the published table.
//   - [Catalogue] finds terms by a printed name. [Table] is one in memory.
//   - [Rank] weighs the terms by name, unit, specimen and kind of value.
//   - [Certain] is the rule for a match without review.
//   - [Specimen] is what was examined. A term of another specimen is never a candidate.
//
// The embedded terms are content from LOINC (http://loinc.org), copyright Regenstrief
// Institute, Inc. and the LOINC Committee, available at no cost under the license at
// http://loinc.org/license. [License] and [Notices] must travel with them.
package loinc
