package healthdata_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// The texts by which phone stores, devices and UCUM name the units of resources, with what 10 of
// them are in the unit of the resource.
var spellings = []struct {
	resource, kind, texts string
	want                  float64
}{
	{"heartrate", "", "bpm BPM count/min /min 1/min {beats}/min {H.B.}/min beats/min min^-1 min-1 beats/minute", 10},
	{"heartrate", "", "count/s Hz /s", 600},
	{"respiratory_rate", "", "bpm /min {breaths}/min breaths/min brpm", 10},
	{"hrv", "", "rmssd ms MS msec", 10},
	{"hrv_sdnn", "", "ms sdnn SDNN milliseconds", 10},
	{"hrv", "", "s sec", 10_000},
	{"blood_oxygen", "", "% pct percent %{saturation}", 10},
	{"blood_oxygen", "", "1 fraction", 1000},
	{"glucose", "", "mmol/L mmol/l MMOL/L mM mmol<180.1558800000541>/L mmol·L⁻¹", 10},
	{"glucose", "", "mg/dL mg/dl MG/DL mg/100mL mg%", 10 / 18.0182},
	{"glucose", "", "g/L", 1000 / 18.0182},
	{"cholesterol", "cholesterol/ldl", "mg/dL mg/dl", 10 / 38.67},
	{"weight", "", "kg KG Kg kilogram kilograms", 10},
	{"weight", "", "lb LB lbs [lb_av] pounds", 4.5359237},
	{"weight", "", "g G grams", 0.01},
	{"weight", "", "st [stone_av]", 63.5029318},
	{"distance", "", "m M meters metres", 10},
	{"distance", "", "km KM kilometers", 10_000},
	{"distance", "", "mi [mi_i] miles", 16_093.44},
	{"distance", "", "ft [ft_i]", 3.048},
	{"waist_circumference", "", "in [in_i] inches", 25.4},
	{"calories_active", "", "kcal Kcal KCAL Cal [Cal] kilocalories", 10},
	{"calories_active", "", "cal", 0.01},
	{"calories_active", "", "kJ KJ kj", 10 / 4.184},
	{"steps", "", "count {steps} counts {count} 1", 10},
	{"body_temperature", "", "°C degC Cel cel C celsius ℃", 10},
	{"body_temperature", "", "°F degF [degF] F ℉", (10 - 32) / 1.8},
	{"body_temperature", "", "K", 10 - 273.15},
	{"blood_pressure", "", "mmHg mm[Hg] MMHG mm[hg]", 10},
	{"blood_pressure", "", "kPa", 75.00615758456563},
	{"vo2_max", "", "mL/kg/min ml/kg/min mL/min·kg mL/kg·min ml/(kg*min) mL/(kg.min) mL/(min.kg) mL/min/kg ml.kg-1.min-1", 10},
	{"water", "", "mL ml ML milliliters cc", 10},
	{"water", "", "L l liters", 10_000},
	{"water", "", "fl_oz_us [foz_us] fl_oz", 295.735295625},
	{"water", "", "cup_us [cup_us]", 2365.882365},
	{"caffeine", "", "g gram", 10},
	{"caffeine", "", "mg MG milligrams", 0.01},
	{"caffeine", "", "ug mcg µg μg", 1e-5},
	{"mindfulness_minutes", "", "min MIN minutes", 10},
	{"mindfulness_minutes", "", "s sec seconds", 10.0 / 60},
	{"mindfulness_minutes", "", "h hr hours", 600},
	{"insulin_injection", "", "unit IU iu U u [iU] [IU] units count", 10},
	{"forced_vital_capacity", "", "L l", 10},
	{"peak_expiratory_flow_rate", "", "L/min l/min", 10},
	{"peak_expiratory_flow_rate", "", "L/s", 600},
	{"electrocardiogram_voltage", "", "mV mv", 10},
	{"electrocardiogram_voltage", "", "uV µV mcV", 0.01},
	{"body_mass_index", "", "index kg/m2 kg/m² count kg/m^2", 10},
}

func TestUnitTexts(t *testing.T) {
	for _, c := range spellings {
		r := healthdata.ResourceBySlug(c.resource)
		for _, text := range strings.Fields(c.texts) {
			for _, variant := range []string{text, " " + text + " ", strings.ReplaceAll(text, "/", " / ")} {
				got, ok := r.Convert(10, variant, c.kind)
				require.True(t, ok, "%s in %q", c.resource, variant)
				require.InDelta(t, c.want, got, 1e-9, "%s in %q", c.resource, variant)
			}
		}
	}
}

// A text that is another unit is refused: it is not guessed.
func TestOtherUnits(t *testing.T) {
	for resource, texts := range map[string][]string{
		"mindfulness_minutes": {"S", "H", "", "m", "siemens"},
		"hrv":                 {"S", "mS/cm", "bpm"},
		"calories_active":     {"CAL", "kW", "W"},
		"insulin_injection":   {"kU/L", "U/L", "mL", "kU"},
		"glucose":             {"mm", "kU/L", "%", "mol/mol"},
		"weight":              {"%", "kg/m2", "lb/in", "m"},
		"steps":               {"km", "bpm", "count/min"},
		"ige":                 {"kU/L", "[IU]/mL"},
		"heartrate":           {"ms", "h", "count"},
	} {
		for _, text := range texts {
			_, ok := healthdata.ResourceBySlug(resource).Convert(1, text, "")
			require.False(t, ok, "%s in %q", resource, text)
		}
	}
}

// What the UCUM table says of a code is what a conversion says.
func TestUnitsAgreeWithUCUM(t *testing.T) {
	path := os.Getenv("HEALTHLABTEST_UCUM")
	if path == "" {
		path = filepath.Join("..", "..", "shared", "data", "ucum", "ucum-essence.xml")
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Skip("no table of UCUM: HEALTHLABTEST_UCUM names it")
	}
	var table struct {
		Units []struct {
			Code  string `xml:"Code,attr"`
			Value struct {
				Unit  string `xml:"Unit,attr"`
				Value string `xml:"value,attr"`
			} `xml:"value"`
		} `xml:"unit"`
	}
	_, body, _ := bytes.Cut(doc, []byte("?>")) // it declares ASCII
	require.NoError(t, xml.Unmarshal(body, &table))
	values := map[string]func() (float64, string){}
	var value func(code string) (float64, string) // in metres, grams, litres or joules
	for _, base := range []string{"m", "g", "L", "J"} {
		values[base] = func() (float64, string) { return 1, base }
	}
	values["l"], values["[in_i]3"] = values["L"], func() (float64, string) { return 16.387064e-3, "L" }
	for _, u := range table.Units {
		if values[u.Code] == nil {
			values[u.Code] = func() (float64, string) {
				n, err := strconv.ParseFloat(u.Value.Value, 64)
				require.NoError(t, err, u.Code)
				of, base := value(u.Value.Unit)
				return n * of, base
			}
		}
	}
	value = func(code string) (float64, string) {
		if of, part, ok := strings.Cut(code, "/"); ok {
			n, err := strconv.ParseFloat(part, 64)
			require.NoError(t, err, code)
			whole, base := value(of)
			return whole / n, base
		}
		for prefix, factor := range map[string]float64{"": 1, "k": 1e3, "d": 0.1, "c": 1e-2, "m": 1e-3} {
			if rest, ok := strings.CutPrefix(code, prefix); ok && values[rest] != nil && (prefix == "" || values[code] == nil) {
				of, base := values[rest]()
				return factor * of, base
			}
		}
		require.Fail(t, "no unit "+code)
		return 0, ""
	}
	for to, codes := range map[string]string{
		"kg": "kg g [lb_av] [stone_av] [oz_av]", "m": "m km cm [mi_i] [ft_i] [yd_i] [in_i] [nmi_i]", "cm": "cm m mm [in_i] [ft_i]",
		"g": "g mg kg [oz_av] [lb_av]", "ml": "mL L dL [foz_us] [cup_us] [pt_us] [foz_br] [pt_br]", "kcal": "kcal [Cal] cal",
	} {
		base, dimension := value(strings.Replace(to, "ml", "mL", 1))
		for _, code := range strings.Fields(codes) {
			of, same := value(code)
			require.Equal(t, dimension, same, code)
			got, ok := healthdata.ConvertUnit(1, code, to)
			require.True(t, ok, "%s to %s", code, to)
			require.InEpsilon(t, of/base, got, 1e-7, "%s to %s", code, to)
		}
	}
}

func TestUnitsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Units of samples

A sample has its unit as a text. The service keeps values in the unit of the resource and turns other
units into it. Case, spaces, glyphs (` + "`µ` `·` `²`" + `) and annotations in braces (` + "`{steps}`" + `) do not count, but
for texts that are another unit: ` + "`S` is siemens and no second, `H` is henry and no hour, and `cal` is a thousandth of `Cal` and `kcal`" + `.
A text that is not listed refuses its item. Codes in brackets are those of UCUM.

| resource | unit | texts, a group for each unit |
|---|---|---|
`)
	for _, r := range healthdata.Timeseries() {
		if groups := healthdata.UnitTexts(r.Unit); r.Events && len(groups) > 0 {
			if r.Slug == "glucose" || r.Slug == "cholesterol" {
				groups = append(groups, "`mg/dl` `mg/100ml` `mg%` `g/l` `mg/l` `ug/ml` `mg/ml` `g/dl`, by the molar mass of the substance")
			}
			b.WriteString("| `" + r.Slug + "` | " + r.Unit + " | " + strings.Join(groups, "; ") + " |\n")
		}
	}
	const page = "../docs/units.md"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./healthdata -run UnitsAreDocumented -update")
}
