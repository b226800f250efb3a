// Package ucum reads units of measure: codes of the Unified Code for Units of Measure (UCUM) and
// the texts that laboratories, phones and devices write ("Tsd./µl", "x10E3/uL", "lbs").
//
// The names to know:
//
//   - [FromCode] reads a code of UCUM, with every atom and prefix of the official table.
//   - [Convert] converts a value between two codes, special units such as Cel and [pH] included.
//   - [Parse] reads a unit that is printed on a report, and [ParseAs] one that is given with a value.
//   - [Unit.Factor] and [Same] compare units as laboratories do.
//   - [Repair] and [RepairAmong] correct units in which a reader of pictures misread letters.
//
// Mass is not converted to amount of substance: that needs the analyte.
package ucum
