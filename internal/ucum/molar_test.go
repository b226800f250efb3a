package ucum_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/ucum"
)

// The factors of devices and the molar masses of laboratories are those of one substance.
func TestMolarMass_deviceFactorsEqualTheMolarMassesOfLabs(t *testing.T) {
	file, err := os.Open("data/ucum_lab_units.csv")
	require.NoError(t, err)
	defer file.Close()
	r := csv.NewReader(file)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	found := map[string]bool{}
	devices := map[string]float64{"Glucose": ucum.GlucoseMass, "Cholesterol": ucum.CholesterolMass, "Triglyceride": ucum.TriglycerideMass}
	for _, row := range rows {
		if mass := devices[row[3]]; row[0] == "molar" && mass > 0 {
			laboratory, err := strconv.ParseFloat(row[9], 64)
			require.NoError(t, err)
			require.InEpsilon(t, laboratory, mass, 4e-4, row[3])
			found[row[3]] = true
		}
	}
	require.True(t, found["Glucose"])
}
