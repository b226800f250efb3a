package labreport

import "strings"

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

// Fluids that are published as other and told apart for matching: a code of one is no code
// of another.
const (
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
	case cerebrospinal, pleural, peritoneal, pericardial, synovial, amniotic, bile, dialysate, semen, sweat:
		return OtherSpecimen
	}
	return s
}

// compatible reports whether a term of the specimen of may be what a row of the specimen s
// means. Serum, plasma, whole and capillary blood are not told apart here.
func (s Specimen) compatible(of Specimen) bool {
	blood := func(s Specimen) bool { return s == Blood || s == CapillaryBlood }
	switch {
	case s == NoSpecimen, of == NoSpecimen, s == of, blood(s) && blood(of):
		return true
	case s == OtherSpecimen, of == OtherSpecimen: // a fluid that is not named
		return s.published() == OtherSpecimen && of.published() == OtherSpecimen
	}
	return false
}

// specimenWords are words, in the form of termKey, that name a specimen.
var specimenWords = map[string]Specimen{
	"urine": Urine, "urinalysis": Urine, "urinstatus": Urine, "urinsediment": Urine, "urianalysis": Urine, "uroanalisis": Urine, "ecbu": Urine, "harnstatus": Urine, "urinteststreifen": Urine,
	"serum": Blood, "plasma": Blood, "blood": Blood, "hematology": Blood, "hamatologie": Blood, "hematologia": Blood, "hematologie": Blood, "hemograma": Blood, "blutbild": Blood,
	"stool": Stool, "stuhl": Stool, "heces": Stool, "feces": Stool, "selles": Stool, "faeces": Stool, "fecal": Stool,
	"saliva": Saliva, "speichel": Saliva, "salive": Saliva, "capillary": CapillaryBlood, "kapillarblut": CapillaryBlood, "capilar": CapillaryBlood,
	"csf": cerebrospinal, "cerebrospinal": cerebrospinal, "liquor": cerebrospinal, "lcr": cerebrospinal, "cefalorraquideo": cerebrospinal, "cephalorachidien": cerebrospinal,
	"pleural": pleural, "pleurapunktat": pleural, "pleuraerguss": pleural,
	"peritoneal": peritoneal, "ascites": peritoneal, "ascitic": peritoneal, "aszites": peritoneal, "ascitis": peritoneal, "ascite": peritoneal,
	"pericardial": pericardial, "pericardico": pericardial, "pericardique": pericardial,
	"synovial": synovial, "synovialflussigkeit": synovial, "gelenkpunktat": synovial, "joint": synovial,
	"amniotic": amniotic, "fruchtwasser": amniotic, "amniotico": amniotic, "amniotique": amniotic,
	"dialysate": dialysate, "dialysat": dialysate, "dializado": dialysate,
	"semen": semen, "seminal": semen, "ejakulat": semen, "ejaculate": semen, "sperme": semen,
	"sweat": sweat, "schweiss": sweat, "sudor": sweat, "sueur": sweat,
}

// specimenOf returns the specimen that a name or a panel's heading mentions.
func specimenOf(text string) Specimen {
	got := NoSpecimen
	for _, w := range termKey(text) {
		if s := specimenWords[w]; s != "" && (got == NoSpecimen || got == Blood) {
			got = s
		}
	}
	return got
}

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
