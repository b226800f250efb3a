// Package ucum reads units as laboratories print them ("Tsd./µl", "x10E3/uL", "mcg/dL") and
// compares them by dimension, in the Unified Code for Units of Measure.
//
// The names to know:
//
//   - [Parse] reads a printed unit: a table of printed forms, then the grammar of UCUM.
//   - [Unit.Factor] converts between units that measure the same.
//   - [Unit.Kind] is what a unit measures: a mass, an amount of substance, a number of cells.
//   - [Repair] and [RepairAmong] mend units that a reader of pictures misread.
//
// Mass is not converted to amount of substance: that needs the analyte.
package ucum
