package healthdata_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/ucum"
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
	{"body_temperature_delta", "", "°C degC Cel C K kelvin", 10},
	{"body_temperature_delta", "", "°F degF [degF] F", 10 / 1.8},
	{"blood_pressure", "", "mmHg mm[Hg] MMHG mm[hg]", 10},
	{"blood_pressure", "", "kPa kpa KPA", 75.00615758456563},
	{"vo2_max", "", "mL/kg/min ml/kg/min mL/min·kg mL/kg·min ml/(kg*min) mL/(kg.min) mL/(min.kg) mL/min/kg ml.kg-1.min-1 mlkg-1min-1", 10},
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

func TestUnits_eachSpellingIsConverted(t *testing.T) {
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

// Names of units in words, with underscores as programs write constants, and with per, are read part by part.
func TestUnits_namesInWordsAreConverted(t *testing.T) {
	for _, c := range []struct {
		resource, kind string
		texts          []string
		want           float64
	}{
		{"heartrate", "", []string{"beats_per_minute", "BEATS_PER_MINUTE", "beats per minute", "counts/min", "Counts per minute", "beats/minute"}, 10},
		{"heartrate", "", []string{"counts per second"}, 600},
		{"respiratory_rate", "", []string{"RESPIRATIONS_PER_MINUTE", "breaths per minute"}, 10},
		{"glucose", "", []string{"millimoles per liter", "MILLIMOLES_PER_LITER", "millimole/litre", "mmol per L", "mmol per liter"}, 10},
		{"glucose", "", []string{"MILLIGRAM_PER_DECILITER", "milligrams per deciliter", "mg per dL", "milligrams/decilitre"}, 10 / 18.0182},
		{"body_temperature", "", []string{"DEGREE_CELSIUS", "degree_celsius", "degrees celsius", "degrees_celsius"}, 10},
		{"body_temperature", "", []string{"DEGREE_FAHRENHEIT", "degrees_fahrenheit"}, (10 - 32) / 1.8},
		{"blood_pressure", "", []string{"MILLIMETER_OF_MERCURY", "millimeters of mercury", "millimetres of mercury"}, 10},
		{"vo2_max", "", []string{"milliliters per kilogram per minute", "milliliters per minute kilogram", "MILLILITERS_PER_MINUTE_KILOGRAM"}, 10},
		{"peak_expiratory_flow_rate", "", []string{"litres/min", "LITER_PER_MINUTE", "liters per minute"}, 10},
		{"peak_expiratory_flow_rate", "", []string{"milliliters per second"}, 0.6},
		{"water", "", []string{"FLUID_OUNCE_US", "US fl oz", "fluid ounces (US)"}, 295.735295625},
		{"water", "", []string{"FLUID_OUNCE_IMPERIAL"}, 284.130625},
		{"water", "", []string{"MILLILITER", "milliliters"}, 10},
		{"insulin_injection", "", []string{"INTERNATIONAL_UNIT", "international units"}, 10},
		{"weight", "", []string{"KILOGRAM", "kilograms"}, 10},
	} {
		r := healthdata.ResourceBySlug(c.resource)
		for _, text := range c.texts {
			got, ok := r.Convert(10, text, c.kind)
			require.True(t, ok, "%s in %q", c.resource, text)
			require.InDelta(t, c.want, got, 1e-9, "%s in %q", c.resource, text)
		}
	}
	for resource, texts := range map[string][]string{
		"glucose": {"milligrams", "per deciliter", "milligrams per", "milligrams per deciliter per", "milligrams per kilogram", "grams per gram", "per"},
		"weight":  {"kilograms per meter", "kilo gram per", "_", "kg_per_"}, "heartrate": {"minutes", "per hour minute", "beats per", "beats"},
	} {
		for _, text := range texts {
			_, ok := healthdata.ResourceBySlug(resource).Convert(10, text, "")
			require.False(t, ok, "%s in %q", resource, text)
		}
	}
}

// A difference of two temperatures has no zero point: only the size of a degree counts.
func TestUnits_differenceIsConvertedWithoutTheZeroOfItsUnit(t *testing.T) {
	differences := 0
	for _, r := range healthdata.Timeseries() {
		if bounds, ok := r.Bounds(); !ok || r.Unit != "°C" || bounds.Low >= 0 {
			continue
		}
		differences++
		for unit, degree := range map[string]float64{"°C": 1, "Cel": 1, "K": 1, "mK": 0.001, "°F": 1 / 1.8, "[degRe]": 1.25} {
			for _, v := range []float64{-3.6, 0, 1, 1.8, 32} {
				got, ok := r.Convert(v, unit, "")
				require.True(t, ok, "%s in %s", r.Slug, unit)
				require.InDelta(t, v*degree, got, 1e-12, "%g %s", v, unit)
			}
		}
		s := newStation(t, healthdata.Options{})
		sample := bucket("°F", ago(time.Hour), time.Minute, 1.8)
		s.samples(r.Slug, band, sample)
		got := s.read(r.Slug)
		require.Equal(t, 1.0, got[0].Value.Number)
		require.Equal(t, 1.8, *got[0].SourceValue)
	}
	require.Equal(t, 1, differences)
}

// A text that is another unit is refused: it is not guessed.
func TestUnits_ofAnotherQuantityAreRefused(t *testing.T) {
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

func TestUnits_documentListsEverySpelling(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Units of samples

A sample has its unit as a text. The service keeps values in the unit of the resource and turns other
units into it. It reads

- codes of UCUM (https://ucum.org) with every prefix, in their case-sensitive and case-insensitive forms: ` + "`mm[Hg]`, `[lb_av]`, `MG/DL`" + `;
- the names of units with their prefixes, in the singular and plural, and with per or a slash between them: ` + "`kilogram`, `millilitres`, `milligrams per deciliter`, `LITER_PER_MINUTE`" + `;
- the texts of the table below.

Case, spaces, glyphs (` + "`µ` `·` `²`" + `) and annotations in braces (` + "`{steps}`" + `) do not count, but for texts that
are another unit: ` + "`S` is siemens and no second, `H` is henry and no hour, and `cal` is a thousandth of `Cal` and `kcal`" + `.
` + "`U` in `kU/L` is a unit of an enzyme and no international unit" + `. A name of several units (` + "`pint`, `gallon`" + `) and a text that is not
known refuse their item. A mass of glucose or cholesterol in a volume is turned into an amount by its molar mass.
A difference of temperatures (` + "`body_temperature_delta`" + `) is turned by the size of a degree: 1.8 °F and 1 K are 1 °C.
The unit and the value that were sent stay with the sample where they differ: ` + "`source_unit` and `source_value`" + `.

| unit of the resources | texts beyond UCUM, by code |
|---|---|
`)
	units := map[string]bool{}
	for _, r := range healthdata.Timeseries() {
		units[r.Unit] = true
	}
	texts := ucum.GivenTexts()
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		var groups []string
		for _, code := range slices.Sorted(maps.Keys(texts)) {
			known := slices.DeleteFunc(slices.Clone(texts[code]), func(text string) bool {
				v, ok := healthdata.ConvertUnit(1, text, unit)
				of, _ := healthdata.ConvertUnit(1, code, unit)
				return !ok || v != of
			})
			if len(known) > 0 {
				groups = append(groups, code+": `"+strings.Join(known, "` `")+"`")
			}
		}
		if len(groups) > 0 {
			b.WriteString("| " + unit + " | " + strings.Join(groups, "; ") + " |\n")
		}
	}
	const page = "../docs/units.md"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got), "run go test ./healthdata -run TestUnits_documentListsEverySpelling -update")
}

// BenchmarkConvert converts values as an upload does for each of its samples.
func BenchmarkConvert(b *testing.B) {
	for _, c := range []struct{ resource, unit string }{{"glucose", "mg/dL"}, {"weight", "lb"}, {"weight", "no unit"}} {
		b.Run(c.resource+" "+c.unit, func(b *testing.B) {
			r := healthdata.ResourceBySlug(c.resource)
			for b.Loop() {
				_, _ = r.Convert(100, c.unit, "")
			}
		})
	}
}
