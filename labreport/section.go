package labreport

import (
	"slices"

	"github.com/healthlab-dev/healthlab/internal/fold"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// specimenIn returns the specimen that the name of a panel implies: lipids and blood counts are measured in
// blood.
func specimenIn(panel string) loinc.Specimen {
	of := loinc.SpecimenOf(panel)
	ofBlood := slices.ContainsFunc(loinc.Key(panel), func(w string) bool { return bloodPanels[w] })
	switch {
	case !ofBlood:
		return of
	case of == loinc.NoSpecimen:
		return loinc.Blood
	case of != loinc.Blood && loinc.Joins(panel): // "Renal panel and urine"
		return loinc.SeveralSpecimens
	}
	return of
}

// departments are words in headings that name a department of the laboratory. They imply blood if the report
// states no other specimen.
var departments = map[string]bool{"hematology": true, "haematology": true, "hamatologie": true, "hematologia": true, "hematologie": true}

// bloodPanels are words, in the form of [loinc.Key], in names of panels that are measured in blood.
var bloodPanels = fold.Set(`cbc haemogram hemogram hemogramme lipid lipide lipido lipidprofil lipidique lipidico lipidstatus blutfette fettstoffwechsel metabolic bmp cmp
	electrolyte elektrolyte electrolito liver leber leberwerte hepatic hepatico hepatique hepatogramme thyroid schilddruse schilddrusenwerte tiroide tiroideo tiroidea thyroide thyroidien
	coagulation gerinnung coagulacion hemostase hemostasia vitamin vitamine iron eisenstoffwechsel anemia hormone hormone serology serologie serologia renal nierenwerte tumor`)

// subsections are words in headings, such as "Microscopy" in a urinalysis, of parts of a section. Such a part has the
// specimen of the section. The names of departments, such as "Chemistry", are not among them.
var subsections = fold.Set(`microscopic microscopy microscopica microscopico microscopique mikroskopie mikroskopisch mikroskopische sediment sedimento sedimentbefund chemical chemisch
	chemische chimique quimico physical macroscopic macroscopy makroskopisch makroskopische macroscopique macroscopico fisico physique dipstick strip teststreifen cell zellzahl celulas cellule
	cytology cytologie zytologie citologia differential differenzierung`)

// besideSubsections are words that may stand in a heading beside the words of subsections.
var besideSubsections = fold.Set(`examination exam examen untersuchung analysis analyse analisis evaluation test count finding befund property propertie characteristic appearance aspect aspecto
	automated manual of the and by und der y del de la et du`)

// section is the part of a report under one heading.
type section struct {
	name     string
	line     int
	specimen loinc.Specimen
}

// following returns the section that begins with a heading in the given line. A heading inside of section s, such as
// "Microscopy", and a department directly below the heading of s take the specimen of s.
func (s section) following(heading string, line int) section {
	next := section{heading, line, specimenIn(heading)}
	nested := s.line >= 0 && line == s.line+1 && s.specimen != loinc.Blood
	switch {
	case isDepartment(heading) && nested && s.specimen != loinc.NoSpecimen:
		next.specimen = s.specimen
	case isDepartment(heading) && s.specimen.Published() == loinc.OtherSpecimen:
		next.specimen = loinc.SeveralSpecimens // a department also counts the cells of fluids
	case next.specimen == loinc.NoSpecimen && (nested || isSubsection(heading)):
		next.specimen = s.specimen
	}
	return next
}

func isDepartment(heading string) bool {
	return slices.ContainsFunc(loinc.Key(heading), func(w string) bool { return departments[w] })
}

func isSubsection(heading string) bool {
	words := loinc.Key(heading)
	return slices.ContainsFunc(words, func(w string) bool { return subsections[w] }) &&
		!slices.ContainsFunc(words, func(w string) bool { return !subsections[w] && !besideSubsections[w] })
}

// inferSpecimens sets the specimen of rows that state none. Two rows of a panel with analytes of only one
// specimen, blood or urine, decide for the panel. If no row is of another specimen, two such rows of the report
// decide for rows without a panel, and one such row is enough for its panel.
func inferSpecimens(c loinc.Catalogue, rows []*RawRow) {
	for _, r := range rows {
		if r.Specimen == "" || r.Specimen == loinc.NoSpecimen {
			r.Specimen = specimenIn(r.Panel)
		}
	}
	inBlood, inUrine := shown{panel: map[string]int{}}, shown{panel: map[string]int{}}
	for _, r := range rows {
		of := loinc.NamedSpecimen(r.Name)
		if of == loinc.NoSpecimen {
			of = r.Specimen
		}
		if of == loinc.NoSpecimen {
			if found, err := c.Find(r.Name); err == nil {
				switch loinc.ImpliedSpecimen(found).Published() {
				case loinc.Blood:
					inBlood.row(r.Panel)
					inUrine.foreign = true
				case loinc.Urine:
					inUrine.row(r.Panel)
					inBlood.foreign = true
				}
			}
		}
		inBlood.foreign = inBlood.foreign || of == loinc.SeveralSpecimens || !of.Compatible(loinc.Blood)
		inUrine.foreign = inUrine.foreign || of == loinc.SeveralSpecimens || !of.Compatible(loinc.Urine)
	}
	for _, r := range rows {
		if r.Specimen != loinc.NoSpecimen {
			continue
		}
		blood, urine := inBlood.implies(r.Panel), inUrine.implies(r.Panel)
		switch {
		case blood && !urine:
			r.Specimen = loinc.Blood
		case urine && !blood:
			r.Specimen = loinc.Urine
		}
	}
}

// shown counts, in total and by panel, the rows whose analyte is measured only in blood, or only in urine.
type shown struct {
	panel   map[string]int
	all     int
	foreign bool // a row of the report is of another specimen
}

func (s *shown) row(panel string) {
	s.panel[panel]++
	s.all++
}

func (s *shown) implies(panel string) bool {
	return s.panel[panel] >= 2 && (panel != "" || !s.foreign) || s.all >= 2 && !s.foreign && (panel == "" || s.panel[panel] > 0)
}
