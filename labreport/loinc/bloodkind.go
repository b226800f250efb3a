package loinc

import (
	"regexp"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// bloodKind is a kind of blood that a report states. LOINC has separate terms for each.
type bloodKind string

const (
	anyBlood       bloodKind = ""
	arterialBlood  bloodKind = "arterial"
	venousBlood    bloodKind = "venous"
	capillaryBlood bloodKind = "capillary"
	cordBlood      bloodKind = "cord"
	driedBlood     bloodKind = "dried"
	wholeBlood     bloodKind = "whole"
	// serumOrPlasma: the name has the word serum or plasma.
	serumOrPlasma bloodKind = "serum"
	// statedBlood: the name has the word blood alone, which is whole blood, or serum in some laboratories.
	statedBlood bloodKind = "blood"
)

// bloodPhrases identify the kind of blood, at the beginning of a word, without case and accents.
var bloodPhrases = []struct {
	phrase string
	of     bloodKind
}{
	{"arter", arterialBlood}, {"cord", cordBlood}, {"nabelschnur", cordBlood}, {"umbilical", cordBlood}, {"dried", driedBlood}, {"dbs", driedBlood}, {"trockenblut", driedBlood},
	{"gota seca", driedBlood}, {"buvard", driedBlood}, {"filter paper", driedBlood}, {"whole blood", wholeBlood}, {"vollblut", wholeBlood}, {"sangre total", wholeBlood}, {"sang total", wholeBlood},
	{"venous blood", venousBlood}, {"venose", venousBlood}, {"vbg", venousBlood}, {"abg", arterialBlood},
}

// bloodKindOf returns the kind of blood that the name or the heading of a row states; anyBlood if they state none. If
// specimen, the specimen of the row, is not blood, it returns anyBlood. If specimen is capillary blood, the result is
// capillaryBlood, unless they state another kind than serum, plasma or only blood.
func bloodKindOf(q Question, specimen Specimen) bloodKind {
	if !specimen.Compatible(Blood) {
		return anyBlood
	}
	for _, text := range []string{q.Name, q.Panel} {
		folded := " " + fold.String(text)
		for _, p := range bloodPhrases {
			if strings.Contains(folded, " "+p.phrase) {
				return p.of
			}
		}
	}
	if specimen == CapillaryBlood {
		return capillaryBlood
	}
	words := Key(q.Name)
	switch {
	case slices.Contains(words, "serum"), slices.Contains(words, "plasma"):
		return serumOrPlasma
	case slices.Contains(words, "blood") && !reBloodUrea.MatchString(q.Name):
		return statedBlood
	}
	return anyBlood
}

// reBloodUrea matches an analyte of serum that has blood in its name.
var reBloodUrea = regexp.MustCompile(`(?i)\bblood urea nitrogen\b`)

// certain reports whether a term is surely meant for a row of this kind of blood, so that the row needs no review for
// it.
func (k bloodKind) certain(t *Term) bool {
	if s := t.Specimen(); s != Blood && s != CapillaryBlood {
		return true
	}
	system := strings.ToLower(t.System)
	switch k {
	case anyBlood:
		return true
	case wholeBlood, statedBlood:
		return strings.Contains(system, "blood") || strings.HasPrefix(system, "bld")
	case capillaryBlood:
		return t.Specimen() == CapillaryBlood
	case serumOrPlasma:
		return !strings.HasSuffix(system, "blood") && system != "red cells" && !strings.HasPrefix(system, "bld") || strings.Contains(system, "serum")
	}
	return strings.Contains(system, string(k))
}
