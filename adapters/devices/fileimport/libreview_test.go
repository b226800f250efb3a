package fileimport_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

const (
	libreFile     = "Robin_glucose_3-30-2026.csv"
	clarityGerman = "Clarity_Exportieren_Exempel_Robin_2026-03-30.csv"
)

func TestLibreViewExport_givesGlucoseInsulinCarbohydratesAndNotes(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "libreview", libreFile)), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, fileimport.LibreViewExport, rep.Format)
	require.Equal(t, map[string]int{"glucose": 4, "carbohydrates": 1, "insulin_injection": 2, "note": 1}, rep.Samples)
	require.Equal(t, map[string]int{
		"row of the hour in which the clock changed": 1, "ketone": 1, "food without an amount": 1, "Historic Glucose mg/dL (not read)": 1,
	}, rep.Skipped)
	require.Equal(t, []string{"line 14, Historic Glucose mg/dL: left out, expected a number from 10 to 1000"}, rep.Notes)
	require.NotContains(t, rep.String(), "Robin")
	glucose := s.samples["glucose"]
	for i, want := range []struct {
		at     string
		number float64
		source healthdata.SourceType
	}{
		{"2026-03-28 21:04:00", 108, healthdata.SourceAutomatic}, {"2026-03-28 21:19:00", 112, healthdata.SourceAutomatic},
		{"2026-03-28 21:21:00", 115, healthdata.SourceManualScan}, {"2026-03-29 05:40:00", 131, healthdata.SourceFingerprick},
	} {
		require.Equal(t, utc(want.at), glucose[i].Timestamp)
		require.Equal(t, want.number, glucose[i].Value.Number)
		require.Equal(t, "mg/dL", glucose[i].Unit, "as the file has it")
		require.Equal(t, want.source, glucose[i].source.Type)
	}
	insulin := s.samples["insulin_injection"]
	require.Equal(t, []any{"long_acting", "basal", 14.0}, []any{*insulin[0].Type, *insulin[0].DeliveryMode, insulin[0].Value.Number})
	require.Equal(t, []any{"rapid_acting", "bolus", 4.5}, []any{*insulin[1].Type, *insulin[1].DeliveryMode, insulin[1].Value.Number})
	require.Equal(t, "porridge, two cups", s.samples["note"][0].Value.Text)
}

func wide(t testing.TB, text string) string {
	out, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	require.NoError(t, err)
	return out
}

// Headers of each language, with the decimals, separators and dates that their files have.
func TestLibreViewExport_readsHeadersOfEachLanguage(t *testing.T) {
	for name, file := range map[string]string{
		"English, US clock":         "Glucose Data,Generated on,03-30-2026 07:12 AM UTC\nDevice,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\nL,1,03-28-2026 10:04 PM,0,108\n",
		"English, mmol/L, slashes":  "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mmol/L\nL,1,28/03/2026 22:04,0,6.0\n",
		"year first":                "x\ny\n\nDevice,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\nL,1,2026/03/28 22:04,0,108\n",
		"German":                    "Glukose-Werte,Erstellt am,30-03-2026 07:12 UTC,Erstellt von,x\n\nGerät,Seriennummer,Gerätezeitstempel,Aufzeichnungstyp,Glukosewert-Verlauf mg/dL\nL,1,28-03-2026 22:04,0,108\n",
		"German, Latin-1":           "Ger\xe4t;Seriennummer;Ger\xe4tezeitstempel;Aufzeichnungstyp;Glukosewert-Verlauf mmol/L\nL;1;28.03.2026 22:04;0;6,0\n",
		"German, UTF-16":            wide(t, "Gerät\tSeriennummer\tGerätezeitstempel\tAufzeichnungstyp\tGlukosewert-Verlauf mmol/L\nL\t1\t28.03.2026 22:04\t0\t6,0\n"),
		"Spanish":                   "Informe,Generado el,30-03-2026 07:12 UTC\nR,\nDispositivo,Número de serie,Sello de tiempo del dispositivo,Tipo de registro,Historial de glucosa mg/dL\nL,1,28-03-2026 22:04,0,108\n",
		"Dutch":                     "Glucosegegevens,Gegenereerd op\nApparaat,Serienummer,Tijdstempel apparaat,Gegevenstype,Historische glucose mmol/l\nL,1,28-03-2026 22:04,0,\"6,0\"\n",
		"older, in brackets":        "Device,Serial Number,Meter Timestamp,Record Type,Historic Glucose(mg/dL)\nL,1,03-28-2026 10:04 PM,0,108\n",
		"clock of another phone":    "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose [mg/dL]\nL,1,28-03-2026 10:04\u202fp.\u00a0m.,0,108\n",
		"year of two digits":        "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\nL,1,28.03.26 22:04,0,108\n",
		"a file from a list":        "sep=;\r\nDevice;Serial Number;Device Timestamp;Record Type;Historic Glucose mmol/L;\r\nL;1;28.03.2026 22:04;0;6,0;\r\n",
		"line ends of old programs": "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\rL,1,28-03-2026 22:04,0,108\r",
		"French":                    "Données,Généré le\nAppareil,Numéro de série,Horodatage de l’appareil,Type d’enregistrement,Historique de la glycémie mg/dL\nL,1,28-03-2026 22:04,0,108\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, rep, err := importBytes(t, []byte(file), &fileimport.Options{Zone: berlin(t)})
			require.NoError(t, err)
			require.Equal(t, fileimport.LibreViewExport, rep.Format)
			require.Empty(t, rep.Notes)
			require.Len(t, s.samples["glucose"], 1)
			require.Equal(t, utc("2026-03-28 21:04:00"), s.samples["glucose"][0].Timestamp)
			mmol, ok := healthdata.ResourceBySlug("glucose").Convert(s.samples["glucose"][0].Value.Number, s.samples["glucose"][0].Unit, "")
			require.True(t, ok || s.samples["glucose"][0].Unit == "mmol/L")
			if ok {
				require.InDelta(t, 6, mmol, 0.01)
			}
		})
	}
}

// A file whose dates fit both orders is refused until the caller says which one it is.
func TestLibreViewExport_ambiguousDatesNeedOptionsDateOrder(t *testing.T) {
	const header = "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL\n"
	row := func(date string) string { return "L,1," + date + " 22:04,0,108\n" }
	proof := strings.Repeat(row("28-03-2026"), 10)
	for name, c := range map[string]struct {
		rows  string
		order fileimport.DateOrder
		want  string // the first instant; empty if the file is refused
	}{
		"both, not said":     {row("05-03-2026"), "", ""},
		"both, day first":    {row("05-03-2026"), fileimport.DayFirst, "2026-03-05 22:04:00"},
		"both, month first":  {row("05-03-2026"), fileimport.MonthFirst, "2026-05-03 22:04:00"},
		"a later row proves": {row("05-03-2026") + row("28-03-2026"), "", "2026-03-05 22:04:00"},
		"a proof holds":      {row("05-03-2026") + row("28-03-2026"), fileimport.MonthFirst, "2026-03-05 22:04:00"},
		"one other row":      {row("05-03-2026") + row("03-28-2026") + proof, "", "2026-03-05 22:04:00"},
		"two orders":         {row("05-03-2026") + row("03-28-2026") + row("28-03-2026"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := importBytes(t, []byte(header+c.rows), &fileimport.Options{Zone: time.UTC, DateOrder: c.order})
			if c.want == "" {
				require.ErrorIs(t, err, healthlab.Invalid)
				require.ErrorContains(t, err, "the order must be set to day_first or month_first (Options.DateOrder)")
				require.Zero(t, s.calls)
				return
			}
			require.NoError(t, err)
			require.Equal(t, utc(c.want), s.samples["glucose"][0].Timestamp)
		})
	}
}

func TestLibreViewExport_requiresAZoneAndOneUnit(t *testing.T) {
	const header = "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL"
	for want, file := range map[string]string{
		"the times of the file are local":      header + "\n",
		"the header must have one of the colu": header + ",Historic Glucose mmol/L\n",
	} {
		opts := &fileimport.Options{Zone: time.UTC}
		if strings.HasPrefix(want, "the times") {
			opts.Zone = nil
		}
		s, _, err := importBytes(t, []byte(file), opts)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.ErrorContains(t, err, want)
		require.Zero(t, s.calls)
	}
}

func TestClarityExport_readsAGermanFile(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "clarity", clarityGerman)), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, fileimport.ClarityExport, rep.Format)
	require.Equal(t, map[string]int{"glucose": 4}, rep.Samples)
	require.Equal(t, map[string]int{"event of another type": 2}, rep.Skipped)
	require.Empty(t, rep.Notes)
	var got []any
	for _, v := range s.samples["glucose"] {
		got = append(got, v.Value.Number, v.Unit)
	}
	require.Equal(t, []any{6.1, "mmol/L", 6.2, "mmol/L", 40.0, "mg/dL", 400.0, "mg/dL"}, got)
}

func TestClarityExport_readsHeadersOfEachLanguage(t *testing.T) {
	for name, file := range map[string]string{
		"Spanish": "Marca temporal (AAAA-MM-DDThh:mm:ss);Tipo de evento;Nivel de glucosa (mg/dl)\n2026-03-28T22:04:17;Niveles estimados de glucosa;108\n",
		"Italian": "Data e ora (AAAA-MM-GGThh:mm:ss);Tipo di evento;Valore del glucosio (mg/dL)\n2026-03-28T22:04:17;EGV;108\n",
		"German":  "Zeitstempel (JJJJ-MM-TTThh:mm:ss);Ereignisart;Glukosewert (mg/dl)\n2026-03-28T22:04:17;EGV;108\n",
	} {
		s, rep, err := importBytes(t, []byte(file), &fileimport.Options{Zone: berlin(t)})
		require.NoError(t, err, name)
		require.Empty(t, rep.Notes, name)
		require.Equal(t, 108.0, s.samples["glucose"][0].Value.Number, name)
	}
	_, rep, err := importBytes(t, []byte("Zeitstempel (JJJJ-MM-TTThh:mm:ss);Ereignistyp;Glukosewert (mg/dl)\n2026-03-28T22:04:17;Sensorwert;108\n"), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Len(t, rep.Notes, 1, "a word for a reading that is not known is told")
}

// A random good file of glucose readings with one bad row gives what the good file gives.
func TestGlucoseExport_skipsOnlyTheInvalidRow(t *testing.T) {
	for name, f := range map[string]format{
		"libreview": {
			good: func(i int) string {
				return fmt.Sprintf("L,1,%s,0,%d,\n", time.Date(2026, 4, 13, 0, 15*i, 0, 0, time.UTC).Format("02-01-2006 15:04"), 100+i)
			},
			bad: []string{"L,1,x,0,100,\n", "L,1,31-31-2026 10:00,0,100,\n", "L,1,04-13-2026 10:00,0,100,\n", "L,1,01-01-0001 00:00,0,100,\n", "L,1,13-04-2099 10:00,0,100,\n", "L,1\n", "L,1,13-04-2026 00:01,0,x,\n", "L,1,13-04-2026 00:01,0,9999,\n", "\x0b\n", "L,\"1\"1,13-04-2026 00:01,0,100,\n", "L,\"1,13-04-2026 00:01,0,100,\n", "\"\n"},
			wrap: func(s string) string {
				return "Glucose Data\nDevice,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL,Notes\n" + s
			},
		},
		"clarity": {
			good: func(i int) string {
				return fmt.Sprintf("%s;EGW;5,%d\n", time.Date(2026, 4, 13, 0, 5*i, 0, 0, time.UTC).Format("2006-01-02T15:04:05"), i%10)
			},
			bad: []string{"x;EGW;5,0\n", ";Warnung;3,9\n", "2026-04-13T00:00:00;EGW;x\n", "2026-04-13T00:00:00;EGW;999\n", "1970-04-13T00:00:00;EGW;5\n", "a;\n", "\x0b\n", "\"2026-04-13T00:00:00;EGW;5,0\n", ";\"\n"},
			wrap: func(s string) string {
				return "Zeitstempel (JJJJ-MM-TTThh:mm:ss);Ereignistyp;Glukosewert (mmol/L)\n" + s
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts := &fileimport.Options{Zone: time.UTC}
			for c := range prove.Sequential(200, 200, 10_000) {
				random := rand.New(rand.NewPCG(uint64(c), 3))
				items := make([]string, 10+random.IntN(20))
				for i := range items {
					items[i] = f.good(i)
				}
				want, _, err := importBytes(t, []byte(f.wrap(strings.Join(items, ""))), opts)
				require.NoError(t, err)
				bad := f.bad[random.IntN(len(f.bad))]
				got, rep, err := importBytes(t, []byte(f.wrap(strings.Join(slices.Insert(items, random.IntN(len(items)+1), bad), ""))), opts)
				require.NoError(t, err)
				require.Len(t, want.samples["glucose"], len(items))
				require.True(t, reflect.DeepEqual(want.samples, got.samples), "case %d: %q", c, bad)
				require.NotEmpty(t, rep.Skipped, "case %d: it is told", c)
			}
		})
	}
}

// A reading outside of the sensor's range is the nearest value that the sensor can measure, in every language.
func TestGlucoseExport_lowAndHighBecomeTheLimitsOfTheSensor(t *testing.T) {
	const clarity = "Timestamp (YYYY-MM-DDThh:mm:ss),Event Type,Glucose Value (mg/dL)\n2026-03-28T22:04:00,%s,%s\n"
	const libre = "Device,Serial Number,Device Timestamp,Record Type,Historic Glucose mg/dL,Strip Glucose mg/dL\nL,1,28-03-2026 22:04,0,%s,%s\n"
	for word, want := range map[string]float64{
		"Low": 40, "LO": 40, "Niedrig": 40, "niedrig": 40, "Tief": 40, "Bajo": 40, "Baja": 40, "Basso": 40, "Bas": 40, "Faible": 40, "Laag": 40, "Lågt": 40, "Lav": 40, "Baixo": 40, "Niska": 40, "<40": 40, "< 54": 54,
		"High": 400, "HI": 400, "Hoch": 400, "Alto": 400, "Alta": 400, "Élevé": 400, "\u0045\u0301leve\u0301": 400, "Haut": 400, "Hoog": 400, "Högt": 400, "Høj": 400, "Wysoka": 400, "> 400": 400, ">500": 500,
	} {
		for _, file := range []string{fmt.Sprintf(clarity, "egv", word), fmt.Sprintf(libre, word, "")} {
			s, rep, err := importBytes(t, []byte(file), &fileimport.Options{Zone: berlin(t)})
			require.NoError(t, err)
			require.Empty(t, rep.Skipped, word)
			require.Len(t, s.samples["glucose"], 1, word)
			require.Equal(t, []any{want, "mg/dL"}, []any{s.samples["glucose"][0].Value.Number, s.samples["glucose"][0].Unit}, word)
		}
	}
	for _, file := range []string{fmt.Sprintf(clarity, "EGV", "medium"), fmt.Sprintf(clarity, "Calibration", "Low"), fmt.Sprintf(libre, "<9999", ""), fmt.Sprintf(libre, "", "LO")} {
		s, rep, err := importBytes(t, []byte(file), &fileimport.Options{Zone: berlin(t)})
		require.NoError(t, err)
		require.Empty(t, s.samples, file)
		require.NotEmpty(t, rep.Skipped, file)
	}
}
