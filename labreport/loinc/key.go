package loinc

import (
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/internal/fold"
)

// termWords maps words of analyte names with the same meaning in several languages or spellings to one form.
// Words that are mapped to the empty string are ignored.
var termWords = map[string]string{
	"haemoglobin": "hemoglobin", "hamoglobin": "hemoglobin", "hemoglobina": "hemoglobin", "hemoglobine": "hemoglobin", "hgb": "hemoglobin",
	"haematocrit": "hematocrit", "hamatokrit": "hematocrit", "hematocrito": "hematocrit", "hematocrite": "hematocrit", "hct": "hematocrit", "hto": "hematocrit", "hkt": "hematocrit",
	"chol": "cholesterol", "cholesterin": "cholesterol", "colesterol": "cholesterol", "cholesterole": "cholesterol", "cholestrol": "cholesterol",
	"trig": "triglyceride", "trigs": "triglyceride", "triglicerido": "triglyceride", "triglyceride": "triglyceride", "triglyzeride": "triglyceride", "triglyzerid": "triglyceride",
	"glukose": "glucose", "glucosa": "glucose", "glucemia": "glucose", "glycemie": "glucose", "glicemia": "glucose", "blutzucker": "glucose", "gluc": "glucose",
	"creat": "creatinine", "crea": "creatinine", "kreatinin": "creatinine", "creatinina": "creatinine", "creatininemia": "creatinine", "creatinin": "creatinine", "creatininemie": "creatinine",
	"bili": "bilirubin", "bilirrubina": "bilirubin", "bilirubine": "bilirubin", "bilirubina": "bilirubin",
	"natrium": "sodium", "sodio": "sodium", "kalium": "potassium", "potasio": "potassium", "chlorid": "chloride", "cloro": "chloride", "cloruro": "chloride", "chlorure": "chloride", "chlor": "chloride",
	"kalzium": "calcium", "calcio": "calcium", "magnesio": "magnesium", "hierro": "iron", "eisen": "iron", "fer": "iron", "sideremia": "iron",
	"ferritina": "ferritin", "ferritine": "ferritin", "albumina": "albumin", "albumine": "albumin", "proteina": "protein", "proteine": "protein", "eiweiss": "protein", "prot": "protein",
	"gesamteiweiss": "protein total", "gesamtprotein": "protein total", "gesamtbilirubin": "bilirubin total", "gesamtcholesterin": "cholesterol total", "transferrinsattigung": "transferrin saturation",
	"harnsaure": "uric acid", "harnstoff": "urea", "folsaure": "folic acid", "uree": "urea", "uremia": "urea",
	"acido": "acid", "acide": "acid", "urico": "uric", "urique": "uric", "folico": "folic", "folique": "folic",
	"leukozyten": "leukocyte", "leucocito": "leukocyte", "leucocyte": "leukocyte", "leukocyten": "leukocyte", "erythrozyten": "erythrocyte", "eritrocito": "erythrocyte", "hematie": "erythrocyte",
	"thrombozyten": "platelet", "thrombocyte": "platelet", "plaqueta": "platelet", "plaquette": "platelet", "plt": "platelet", "plts": "platelet", "piastrine": "platelet", "trombocito": "platelet",
	"neut": "neutrophil", "neuts": "neutrophil", "neutrophile": "neutrophil", "neutrofilo": "neutrophil", "neutrophilen": "neutrophil", "polys": "neutrophil", "neutro": "neutrophil",
	"lymph": "lymphocyte", "lymphs": "lymphocyte", "lymphozyten": "lymphocyte", "linfocito": "lymphocyte", "lymphocyten": "lymphocyte", "lympho": "lymphocyte",
	"mono": "monocyte", "monos": "monocyte", "monozyten": "monocyte", "monocito": "monocyte", "monocyten": "monocyte",
	"eos": "eosinophil", "eosin": "eosinophil", "eosinophile": "eosinophil", "eosinofilo": "eosinophil", "eosinophilen": "eosinophil", "eosino": "eosinophil",
	"baso": "basophil", "basos": "basophil", "basophile": "basophil", "basofilo": "basophil", "basophilen": "basophil",
	"reticulocito": "reticulocyte", "retikulozyten": "reticulocyte", "retic": "reticulocyte", "retics": "reticulocyte",
	"abs": "absolute", "absolut": "absolute", "absoluto": "absolute", "absolu": "absolute", "absoluta": "absolute", "#": "absolute", "abso": "absolute",
	"percent": "%", "pct": "%", "prozent": "%", "porcentaje": "%", "percentage": "%", "relativ": "%", "relative": "%", "relativo": "%",
	"tot": "total", "gesamt": "total", "totale": "total", "totaux": "total", "totales": "total", "ges": "total",
	"frei": "free", "freies": "free", "freie": "free", "libre": "free", "direkt": "direct", "directa": "direct", "directe": "direct", "dir": "direct", "conjugated": "direct", "conjugada": "direct",
	"indirekt": "indirect", "indirecta": "indirect", "indirecte": "indirect", "unconjugated": "indirect",
	"calc": "calculated", "calculado": "calculated", "calculada": "calculated", "berechnet": "calculated", "calcule": "calculated", "ber": "calculated",
	"ab": "antibody", "abs.": "antibody", "antikorper": "antibody", "ak": "antibody", "anticuerpo": "antibody", "anticorp": "antibody", "ag": "antigen", "antigeno": "antigen", "antigene": "antigen",
	"dheas": "dhea s", "hep": "hepatitis", "hepatite": "hepatitis", "vit": "vitamin", "vitamina": "vitamin", "vitamine": "vitamin",
	"hormona": "hormone", "hormon": "hormone", "sat": "saturation", "sattigung": "saturation", "saturacion": "saturation", "saturacao": "saturation",
	"urin": "urine", "orina": "urine", "urinaire": "urine", "urinary": "urine", "harn": "urine", "urinario": "urine", "urines": "urine",
	"suero": "serum", "serique": "serum", "serico": "serum", "serica": "serum", "plasmatique": "plasma", "plasmatico": "plasma", "plasmatica": "plasma",
	"citratplasma": "plasma", "heparinplasma": "plasma", "vollblut": "blood", "sanguine": "blood", "sanguineo": "blood", "sanguinea": "blood", "sanguin": "blood", "sangre": "blood", "blut": "blood", "sang": "blood",
	"alkalische": "alkaline", "alcalina": "alkaline", "alcaline": "alkaline", "alk": "alkaline", "fosfatasa": "phosphatase", "phosphatas": "phosphatase",
	"fosforo": "phosphorus", "phosphat": "phosphate", "fosfato": "phosphate", "phosphore": "phosphorus", "phosphorous": "phosphorus",
	"transferrina": "transferrin", "transferrine": "transferrin", "fibrinogeno": "fibrinogen", "fibrinogene": "fibrinogen",
	"testosteron": "testosterone", "testosterona": "testosterone", "ostradiol": "estradiol", "oestradiol": "estradiol", "progesteron": "progesterone", "progesterona": "progesterone",
	"prolaktin": "prolactin", "prolactina": "prolactin", "prolactine": "prolactin", "cortisole": "cortisol", "insulina": "insulin", "insuline": "insulin",
	"tirotropina": "thyrotropin", "thyreotropin": "thyrotropin", "tiroxina": "thyroxine", "thyroxin": "thyroxine", "triyodotironina": "triiodothyronine", "trijodthyronin": "triiodothyronine", "triiodothyronin": "triiodothyronine",
	"zinc": "zinc", "zink": "zinc", "kupfer": "copper", "cobre": "copper", "cuivre": "copper", "selen": "selenium", "selenio": "selenium",
	"nuchtern": "fasting", "ayunas": "fasting", "jeun": "fasting", "basal": "fasting",
	"quotient": "ratio", "relacion": "ratio", "rapport": "ratio", "indice": "index", "ratios": "ratio",
	"nicht": "non", "no": "non", "not": "non", "laktat": "lactate", "lipasa": "lipase", "amilasa": "amylase", "amylasen": "amylase",
	"nitrit": "nitrite", "nitrito": "nitrite", "keton": "ketone", "ketonkorper": "ketone", "cetona": "ketone", "cetone": "ketone",
	"bakterien": "bacteria", "bacteria": "bacteria", "bacterie": "bacteria",
	"aspecto": "appearance", "aspect": "appearance", "aussehen": "appearance", "farbe": "color", "colour": "color", "couleur": "color",
	"densidad": "specific gravity", "densite": "specific gravity",
	"the": "", "of": "", "in": "", "de": "", "del": "", "la": "", "le": "", "les": "", "du": "", "des": "", "or": "", "and": "", "y": "", "et": "", "und": "", "im": "", "en": "", "i.": "", "a.": "", "au": "", "à": "",
}

// noiseWords are words about method, specimen or test that hardly change which analyte a name means.
var noiseWords = map[string]bool{
	"serum": true, "plasma": true, "blood": true, "level": true, "test": true, "qn": true, "ql": true, "quant": true, "quantitative": true,
	"qualitative": true, "qual": true, "auto": true, "automated": true, "naat": true, "naa": true, "ia": true, "ifa": true, "eia": true, "elisa": true, "hplc": true,
	"with": true, "w": true, "reflex": true, "refl": true, "rfx": true, "to": true, "monitor": true, "screen": true, "panel": true, "by": true, "ms": true, "lc": true,
	"measured": true, "method": true, "count": true, "s": true, "p": true, "edta": true, "ifcc": true, "nih": true, "sr": true, "random": true, "recuento": true, "anzahl": true,
	"numeration": true, "wr": true, "result": true, "value": true, "rapid": true, "standard": true, "nat": true, "pcr": true, "3rd": true, "4th": true, "generation": true, "gen": true, "um": true,
	"i": true, "clia": true, "eclia": true, "cmia": true, "ise": true, "turbidimetric": true, "turbid": true, "nephelometric": true, "neph": true, "kinetic": true, "photometr": true, "enzymat": true,
	"westergren": true, "enzymatic": true, "jaffe": true, "cardiac": true, "dosage": true, "taux": true, "nivel": true, "nivele": true, "konzentration": true, "adult": true, "aktivitat": true,
}

// Key returns the words of an analyte's name in a normal form and sorted, so that "T4, Free" and "Free T4" have
// one key.
func Key(s string) []string {
	var out []string
	for _, w := range fold.Words(s) {
		if to, ok := termWords[w]; ok {
			if to != "" {
				out = append(out, strings.Fields(to)...)
			}
			continue
		}
		if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is") {
			w = w[:len(w)-1]
			if to, ok := termWords[w]; ok {
				out = append(out, strings.Fields(to)...)
				continue
			}
		}
		if w == "antibodie" {
			w = "antibody"
		}
		out = append(out, w)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func withoutNoise(key []string) []string {
	out := make([]string, 0, len(key))
	for _, w := range key {
		if !noiseWords[w] {
			out = append(out, w)
		}
	}
	return out
}
