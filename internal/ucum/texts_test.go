package ucum_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// A text that is known is known with every prefix, in every case where the case has no meaning, as a code,
// and by its name.
func TestParseAs_readsPrefixesCasesAndNames(t *testing.T) {
	for _, c := range []struct{ like, texts, want string }{
		{"kg", "kg KG Kg kilogram Kilograms kilogrammes {dry}kg", "kg"}, {"kg", "mg MG milligram", "mg"}, {"kg", "t tonne tonnes TNE", "t"}, {"kg", "[lb_av] [LB_AV] lb LBS pounds", "[lb_av]"},
		{"m", "km KM kilometre Kilometers", "km"}, {"m", "ft FEET foot [ft_i]", "[ft_i]"}, {"s", "min MIN minutes", "min"}, {"s", "ms MS Msec milliseconds", "ms"},
		{"L", "mL ml ML millilitre milliliters cc", "mL"}, {"L", "µL μl ul uL UL mcL microliter", "uL"}, {"Pa", "mmHg MMHG mm[Hg] MM[HG] mm[hg]", "mm[Hg]"}, {"Pa", "kPa kilopascal KPAL", "kPa"},
		{"/min", "bpm BPM count/min {beats}/min /min 1/min min-1 min^-1 MIN-1", "/min"}, {"Cel", "°F ℉ degF [degF] fahrenheit", "[degF]"}, {"mmol/L", "mmol/L MMOL/L mM mmol·L⁻¹", "mmol/L"},
		{"J", "kJ KJ kilojoules", "kJ"}, {"J", "Cal [Cal] [CAL]", "[Cal]"}, {"m/s", "km/h KM/H kmh kph km.h-1", "km/h"}, {"V", "uV µV mcV UV microvolt", "uV"},
		{"Pa", "cmAq cmH2O CMAQ", "cm[H2O]"}, {"Pa", "inHg INHG", "[in_i'Hg]"}, {"/min", "rpm RPM resp/min b/min Br/min", "/min"}, {"1", "steps Step {floors} flights PUSHES", "1"},
		{"m/s", "kn KT knots [kn_i]", "[kn_i]"}, {"[iU]", "I.E. I.U. IE UI U", "[iU]"}, {"kg", "lbm", "[lb_av]"}, {"L", "fl.oz. Fl.Oz FL_OZ_US", "[foz_us]"},
	} {
		for _, text := range strings.Fields(c.texts) {
			u, ok := ucum.ParseAs(text, c.like)
			require.True(t, ok, "%s as %s", text, c.like)
			require.True(t, ucum.Same(c.want, u.UCUM), "%s as %s is %s", text, c.like, u.UCUM)
		}
	}
	for like, texts := range map[string]string{
		"s": "S mS uS kS H dH siemens henry m", "kg": "ft u lb/in pH xyz", "L": "pint pints gallon st", "[iU]/L": "U/L kU/L", "U/L": "IU/L k[IU]/L [iU]/L", "J": "CAL calorie", "mmol/L": "mg/dL kU/L /uL", "1": "km",
	} {
		for _, text := range strings.Fields(texts) {
			_, ok := ucum.ParseAs(text, like)
			require.False(t, ok, "%s as %s", text, like)
		}
	}
}

func FuzzParseAs(f *testing.F) {
	f.Add("mmol<180.15>/L", "mmol/L")
	f.Add("{steps}", "1")
	f.Add("°F", "Cel")
	f.Fuzz(func(t *testing.T, text, like string) {
		u, ok := ucum.ParseAs(text, like)
		if !ok {
			return
		}
		require.NoError(t, ucum.Check(u.UCUM))
		if c, ok := u.ConversionTo(like); ok {
			want, err := ucum.Convert(2, u.UCUM, like)
			if err == nil && want != 0 {
				require.InEpsilon(t, want, c.Of(2), 1e-6)
			}
		}
	})
}
