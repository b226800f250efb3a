package labreport

import (
	"regexp"
	"slices"
	"strings"
)

// Specimen is what was examined, in the words of the published sample_type.
type Specimen string

// Specimens. Clients accept further ones.
const (
	Urine          Specimen = "urine"
	Blood          Specimen = "serum_plasma_blood"
	CapillaryBlood Specimen = "capillary_blood"
	Stool          Specimen = "stool"
	Saliva         Specimen = "saliva"
	OtherSpecimen  Specimen = "other"
	NoSpecimen     Specimen = "unknown"
)

// Fluids that are published as other and distinguished for matching: a code of one is no code
// of another.
const (
	dayUrine      Specimen = "urine_24h" // published as urine
	cerebrospinal Specimen = "cerebrospinal_fluid"
	pleural       Specimen = "pleural_fluid"
	peritoneal    Specimen = "peritoneal_fluid"
	pericardial   Specimen = "pericardial_fluid"
	synovial      Specimen = "synovial_fluid"
	amniotic      Specimen = "amniotic_fluid"
	bile          Specimen = "bile"
	dialysate     Specimen = "dialysate"
	semen         Specimen = "semen"
	sweat         Specimen = "sweat"
)

// published returns the sample_type of a specimen.
func (s Specimen) published() Specimen {
	switch s {
	case dayUrine:
		return Urine
	case cerebrospinal, pleural, peritoneal, pericardial, synovial, amniotic, bile, dialysate, semen, sweat:
		return OtherSpecimen
	}
	return s
}

// compatible reports whether a term of the specimen of may be what a row of the specimen s
// means. Serum, plasma, whole and capillary blood are not distinguished here.
func (s Specimen) compatible(of Specimen) bool {
	blood := func(s Specimen) bool { return s == Blood || s == CapillaryBlood }
	switch {
	case s == NoSpecimen, of == NoSpecimen, s == of, blood(s) && blood(of), s == Urine && of == dayUrine:
		return true
	case s == OtherSpecimen, of == OtherSpecimen: // a fluid that is not named
		return s.published() == OtherSpecimen && of.published() == OtherSpecimen
	}
	return false
}

// specimenWords are words, in the form of termKey, that name a specimen.
var specimenWords = map[string]Specimen{
	"urine": Urine, "urinalysis": Urine, "urinstatus": Urine, "urinsediment": Urine, "urianalysis": Urine, "uroanalisis": Urine, "ecbu": Urine, "harnstatus": Urine, "urinteststreifen": Urine, "sammelurin": Urine, "sammelharn": Urine, "spontanurin": Urine, "mittelstrahlurin": Urine, "microalbuminuria": Urine,
	"serum": Blood, "plasma": Blood, "blood": Blood, "hematology": Blood, "hamatologie": Blood, "hematologia": Blood, "hematologie": Blood, "hemograma": Blood, "blutbild": Blood,
	"stool": Stool, "stuhl": Stool, "heces": Stool, "feces": Stool, "selles": Stool, "faeces": Stool, "fecal": Stool,
	"saliva": Saliva, "speichel": Saliva, "salive": Saliva, "capillary": CapillaryBlood, "kapillarblut": CapillaryBlood, "capilar": CapillaryBlood,
	"csf": cerebrospinal, "cerebrospinal": cerebrospinal, "liquor": cerebrospinal, "spinal": cerebrospinal, "lumbar": cerebrospinal, "rachidien": cerebrospinal, "lcr": cerebrospinal, "cefalorraquideo": cerebrospinal, "cephalorachidien": cerebrospinal,
	"pleural": pleural, "pleura": pleural, "thoracentesis": pleural, "pleurapunktat": pleural, "pleuraerguss": pleural,
	"peritoneal": peritoneal, "ascites": peritoneal, "ascitic": peritoneal, "aszites": peritoneal, "ascitis": peritoneal, "ascite": peritoneal, "ascitico": peritoneal, "peritoneo": peritoneal, "paracentesis": peritoneal,
	"bile": bile, "galle": bile, "bilis": bile,
	"pericardial": pericardial, "pericardico": pericardial, "pericardique": pericardial,
	"synovial": synovial, "synovialflussigkeit": synovial, "gelenkpunktat": synovial, "gelenkflussigkeit": synovial, "joint": synovial, "articular": synovial, "articulaire": synovial, "sinovial": synovial,
	"amniotic": amniotic, "fruchtwasser": amniotic, "amniotico": amniotic, "amniotique": amniotic,
	"dialysate": dialysate, "dialysat": dialysate, "dializado": dialysate,
	"semen": semen, "seminal": semen, "ejakulat": semen, "ejaculate": semen, "sperme": semen, "esperma": semen, "spermiogramm": semen, "spermogram": semen,
	"ponction": OtherSpecimen, "drain": OtherSpecimen, "sputum": OtherSpecimen, "esputo": OtherSpecimen, "swab": OtherSpecimen, "abstrich": OtherSpecimen, "punktat": OtherSpecimen,
	"fluid": OtherSpecimen, "aspirate": OtherSpecimen, "hair": OtherSpecimen, "haare": OtherSpecimen, "cheveux": OtherSpecimen, "lavage": OtherSpecimen, "bal": OtherSpecimen,
	"sweat": sweat, "schweiss": sweat, "sudor": sweat, "sueur": sweat,
}

// specimenOf returns the specimen that a name or a panel's heading mentions. A named fluid
// precedes a fluid without a name, and both precede blood: "blood cells in pleural fluid".
func specimenOf(text string) Specimen {
	words := termKey(text)
	got := NoSpecimen
	for _, w := range words {
		s := specimenWords[w]
		if s == bile && slices.ContainsFunc(words, func(w string) bool { return bileNames[w] }) {
			continue
		}
		if s != "" && (got == NoSpecimen || got == Blood || got == OtherSpecimen && s != Blood) {
			got = s
		}
	}
	if got == Urine && reDay.MatchString(text) {
		return dayUrine
	}
	return got
}

// onlySpecimen is specimenOf for a statement; NoSpecimen if it names blood and another
// specimen.
func onlySpecimen(text string) Specimen {
	of := specimenOf(text)
	if of != Blood && slices.ContainsFunc(termKey(text), func(w string) bool { return specimenWords[w] == Blood }) {
		return NoSpecimen
	}
	return of
}

// bileNames are words that make "bile" a part of an analyte's name: bile acids in serum.
var bileNames = map[string]bool{"acid": true, "salt": true, "pigment": true}

// reDay is a collection over 24 hours.
var reDay = regexp.MustCompile(`(?i)\b24[ -]?(?:h|hr|hrs|std|stunden|hour|hours|horas|heures)\b|\b(?:sammelurin|sammelharn)\b`)

// fluidSystems are the systems of LOINC terms of body fluids, by a part of their name in
// words or in LOINC's abbreviations.
var fluidSystems = []struct {
	part string
	of   Specimen
}{
	{"csf", cerebrospinal}, {"cerebrospinal", cerebrospinal},
	{"plr fld", pleural}, {"pleural", pleural},
	{"periton", peritoneal}, {"ascit", peritoneal},
	{"pericard", pericardial},
	{"synv", synovial}, {"synovial", synovial},
	{"amnio", amniotic}, {"bil fld", bile}, {"bile", bile},
	{"dial", dialysate}, {"semen", semen}, {"smn", semen}, {"sweat", sweat}, {"sw", sweat},
	{"body fld", OtherSpecimen}, {"body fluid", OtherSpecimen},
}

// systemOf returns the specimen of a term's system.
func systemOf(system string) Specimen {
	s := strings.ToLower(system)
	for _, f := range fluidSystems {
		if s == f.part || len(f.part) > 3 && strings.Contains(s, f.part) {
			return f.of
		}
	}
	switch {
	case s == "24h urine":
		return dayUrine
	case strings.Contains(s, "urine"), s == "ur", strings.HasPrefix(s, "urine"):
		return Urine
	case s == "stool":
		return Stool
	case s == "saliva":
		return Saliva
	case strings.Contains(s, "capillary"), s == "bldc":
		return CapillaryBlood
	case strings.Contains(s, "serum"), strings.Contains(s, "plasma"), strings.Contains(s, "blood"), strings.Contains(s, "red cell"),
		strings.HasPrefix(s, "ser"), strings.HasPrefix(s, "bld"), s == "plas", s == "ppp", s == "rbc", s == "plt", s == "wbc":
		return Blood
	case s == "":
		return NoSpecimen
	}
	return OtherSpecimen
}

// specimenIn returns the specimen that a panel implies: lipids and blood counts are
// measured in blood.
func specimenIn(panel string) Specimen {
	if s := specimenOf(panel); s != NoSpecimen {
		return s
	}
	for _, w := range termKey(panel) {
		if bloodPanels[w] {
			return Blood
		}
	}
	return NoSpecimen
}

// departments are words of headings that name a department of the laboratory. They imply
// blood where the report names no other specimen.
var departments = map[string]bool{"hematology": true, "haematology": true, "hamatologie": true, "hematologia": true, "hematologie": true}

// bloodPanels are words, in the form of termKey, of panels that are measured in blood.
var bloodPanels = lookup(`cbc haemogram hemogram hemogramme lipid lipide lipido lipidprofil lipidique lipidico lipidstatus blutfette fettstoffwechsel metabolic bmp cmp
	electrolyte elektrolyte electrolito liver leber leberwerte hepatic hepatico hepatique hepatogramme thyroid schilddruse schilddrusenwerte tiroide tiroideo tiroidea thyroide thyroidien
	coagulation gerinnung coagulacion hemostase hemostasia vitamin vitamine iron eisenstoffwechsel anemia hormone hormone serology serologie serologia renal nierenwerte tumor`)

// subsections are words of headings inside the section of another specimen.
var subsections = lookup(`microscopic microscopy microscopica microscopico microscopique mikroskopie mikroskopisch sediment sedimento sedimentbefund chemical chemistry chemisch chimique quimico quimica
	chimie physical macroscopic macroscopy makroskopisch macroscopique macroscopico fisico physique dipstick strip teststreifen cell zellzahl celulas cellule cytology cytologie zytologie citologia differential
	differenzierung examination exam examen untersuchung`)

func lookup(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// section is a part of a report under one heading.
type section struct {
	name     string
	line     int
	specimen Specimen
}

// under returns the section of a heading that follows s.
func (s section) under(heading string, line int) section {
	next := section{heading, line, specimenIn(heading)}
	words := termKey(heading)
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	if next.specimen == NoSpecimen && has(subsections) {
		next.specimen = s.specimen
	}
	return next
}

// inFluids are components that are measured in other fluids too, though the catalogue may
// have no code of them.
var inFluids = lookup(`glucose protein albumin lactate amylase lipase cholesterol triglyceride bilirubin creatinine urea leukocyte erythrocyte neutrophil lymphocyte monocyte eosinophil
	macrophage ph sodium potassium chloride ldh adenosine`)

// implied returns the specimen of which all terms are that a name may mean; NoSpecimen if
// they differ or if the analyte is measured in other fluids too.
func implied(found []Found) Specimen {
	got := NoSpecimen
	for _, f := range found {
		if f.Likeness < 0.8 || f.Likeness < found[0].Likeness-0.12 {
			break
		}
		of := systemOf(f.Term.System)
		if of == CapillaryBlood {
			of = Blood
		}
		switch {
		case of == NoSpecimen:
		case got == NoSpecimen:
			got = of
		case got != of:
			return NoSpecimen
		}
		if of == Blood && slices.ContainsFunc(termKey(f.Term.Component), func(w string) bool { return inFluids[w] }) &&
			!strings.ContainsAny(f.Term.Component, "/.") {
			return NoSpecimen
		}
	}
	return got
}

// inferSpecimens sets the specimen of rows that state none: two rows of the same panel that
// are measured in blood alone show that the panel is of blood, and so for the whole report
// where no row is of another specimen.
func inferSpecimens(c Catalogue, rows []*RawRow) {
	for _, r := range rows {
		if r.Specimen == "" || r.Specimen == NoSpecimen {
			r.Specimen = specimenIn(r.Panel)
		}
	}
	blood, all, foreign := map[string]int{}, 0, false
	for _, r := range rows {
		of := specimenOf(r.Name)
		if of == NoSpecimen {
			of = r.Specimen
		}
		if of == NoSpecimen {
			if found, err := c.Find(r.Name); err == nil && implied(found) == Blood {
				blood[r.Panel]++
				all++
			}
		}
		if of.compatible(Blood) {
			continue
		}
		foreign = true
	}
	for _, r := range rows {
		if r.Specimen == NoSpecimen && (blood[r.Panel] >= 2 && (r.Panel != "" || !foreign) || all >= 2 && !foreign) {
			r.Specimen = Blood
		}
	}
}
