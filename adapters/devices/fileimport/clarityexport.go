package fileimport

import (
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// clarityEvents reads the export of Dexcom Clarity: sensor readings and the entries that a person typed. Its times have
// no zone.
var clarityEvents = csvFile{
	format: ClarityExport, name: "Clarity_Export*.csv", read: readClarityEvents, local: true,
	keys: []string{clarityTime, clarityType},
	also: columnNames(
		clarityTime+"|Zeitstempel (JJJJ-MM-TTThh:mm:ss)|Marca temporal (AAAA-MM-DDThh:mm:ss)|Data e ora (AAAA-MM-GGThh:mm:ss)",
		clarityType+"|Ereignistyp|Ereignisart|Tipo de evento|Tipo di evento",
		claritySubtype+"|Ereignisuntertyp|Subtipo de evento|Sottotipo di evento",
		clarityMgdL+"|Glukosewert (mg/dL)|Nivel de glucosa (mg/dL)|Valore del glucosio (mg/dL)",
		clarityMmolL+"|Glukosewert (mmol/L)|Nivel de glucosa (mmol/L)|Valore del glucosio (mmol/L)",
		"Insulin Value (u)|Insulinwert (IE)|Nivel de insulina (u)",
		"Carb Value (grams)|Kohlenhydratwert (Gramm)|Nivel de carbohidratos (gramos)",
		clarityDuration+"|Dauer (hh:mm:ss)",
	),
}

// clarityWords maps the event types of other languages to the English ones. A row of an unknown event type is left out
// and counted.
var clarityWords = columnNames("EGV|EGV|EGW|Niveles estimados de glucosa", "Calibration|Calibration", "Carbs|Carbs", "Insulin|Insulin", "Exercise|Exercise")

const (
	clarityTime     = "Timestamp (YYYY-MM-DDThh:mm:ss)"
	clarityType     = "Event Type"
	claritySubtype  = "Event Subtype"
	clarityDuration = "Duration (hh:mm:ss)"
	clarityMgdL     = "Glucose Value (mg/dL)"
	clarityMmolL    = "Glucose Value (mmol/L)"
)

// clarityEvent maps an event type to its resource, its source type and the columns of its value.
type clarityEvent struct {
	resource string
	source   healthdata.SourceType
	columns  []value[float64]
}

// Values, in mg/dL, that stand for readings below or above the range of sensors: the nearest measurable ones, as in
// the API of the provider.
const (
	sensorLow  = 40
	sensorHigh = 400
)

// sensorWords maps words for readings outside of the sensor's range, after [healthlab.FoldText], to the nearest
// measurable value.
var sensorWords = sensorLimits(
	"low lo niedrig tief bajo baja basso bassa bas basse faible laag lav lavt låg lågt matala baixo baixa niski niska niskie nízký nízká nízké alacsony düşük χαμηλή χαμηλό низкий низкая",
	"high hi hoch alto alta haut haute élevé élevée hoog høj højt høy høyt hög högt korkea wysoki wysoka wysokie vysoký vysoká vysoké magas yüksek υψηλή υψηλό высокий высокая",
)

func sensorLimits(low, high string) map[string]float64 {
	out := map[string]float64{}
	for _, word := range strings.Fields(low) {
		out[healthlab.FoldText(word)] = sensorLow
	}
	for _, word := range strings.Fields(high) {
		out[healthlab.FoldText(word)] = sensorHigh
	}
	return out
}

// outsideSensor returns the nearest measurable value for a reading outside of the sensor's range, and its unit. The
// cell holds a word such as Low, or the limit with a comparator (<40) in the unit of its column. It returns false
// for any other text.
func outsideSensor(r *rows, c *value[float64], unit string) (limit float64, in string, ok bool) {
	text := r.text(c.column)
	if limit, ok := sensorWords[healthlab.FoldText(text)]; ok {
		return limit, mgPerDecilitre, true
	}
	if bare := strings.TrimLeft(text, "<>≤≥= "); bare != text {
		limit, ok = r.number(bare)
		return limit, unit, ok && limit >= c.least && limit <= c.most
	}
	return 0, "", false
}

// glucoseColumns lists the glucose columns; a file has one of them.
var glucoseColumns = []value[float64]{
	{clarityMgdL, 10, 1000, func(v *float64, n float64) { *v = n }},
	{clarityMmolL, 0.5, 56, func(v *float64, n float64) { *v = n }},
}

var clarityKinds = map[string]clarityEvent{
	"EGV":         {"glucose", healthdata.SourceAutomatic, glucoseColumns},
	"Calibration": {"glucose", healthdata.SourceFingerprick, glucoseColumns},
	"Carbs":       {"carbohydrates", healthdata.SourceApp, []value[float64]{{"Carb Value (grams)", 0, 5000, func(v *float64, n float64) { *v = n }}}},
	"Insulin":     {"insulin_injection", healthdata.SourceApp, []value[float64]{{"Insulin Value (u)", 0, 1000, func(v *float64, n float64) { *v = n }}}},
	"Exercise":    {"workout_duration", healthdata.SourceApp, nil}, // its value is the duration
}

// clarityInsulins maps the insulin subtypes of the export to insulin types and delivery modes.
var clarityInsulins = map[string]struct{ kind, mode string }{"Fast-Acting": {"rapid_acting", "bolus"}, "Long-Acting": {"long_acting", "basal"}}

// clarityIntensities maps the subtypes of exercise to intensities.
var clarityIntensities = map[string]string{"Light": "low", "Medium": "medium", "Heavy": "high"}

// readClarityEvents stores glucose, carbohydrates, insulin and exercise.
func readClarityEvents(r *rows) error {
	_, mgdl := r.columns[foldColumn(clarityMgdL)]
	_, mmoll := r.columns[foldColumn(clarityMmolL)]
	if mgdl == mmoll {
		return &FileError{Format: ClarityExport, Line: 1, Msg: "the header must have one of the columns " + clarityMgdL + " and " + clarityMmolL}
	}
	batches := map[healthdata.SourceType]*batch{}
	for _, t := range []healthdata.SourceType{healthdata.SourceAutomatic, healthdata.SourceFingerprick, healthdata.SourceApp} {
		batches[t] = newBatch(r.out, r.out.recordedBy(t))
	}
	read := false
	err := r.each(func() error {
		kind, known := clarityKinds[clarityWords[foldColumn(r.text(clarityType))]]
		read = read || known
		if !known { // alerts, and rows about the person and the devices
			r.skipRow("event of another type")
			return nil
		}
		s, ok := claritySample(r, &kind)
		if !ok {
			return nil
		}
		if err := batches[kind.source].sample(kind.resource, s); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !read {
		r.out.note("the file must have a row with a known event type; sensor readings have the type EGV, EGW or Niveles estimados de glucosa")
	}
	for _, t := range []healthdata.SourceType{healthdata.SourceAutomatic, healthdata.SourceFingerprick, healthdata.SourceApp} {
		if err := batches[t].flush(); err != nil {
			return err
		}
	}
	return nil
}

// claritySample returns the sample of a row. ok is false if the value, the time or a required subtype of the row is
// missing or unreadable.
func claritySample(r *rows, kind *clarityEvent) (s healthdata.Sample, ok bool) {
	at, ok := localInstant(r, clarityTime)
	if !ok {
		return s, false
	}
	s = healthdata.Sample{Timestamp: healthlab.At(at), TimezoneOffset: offsetOf(at)}
	number := nan
	switch kind.resource {
	case "glucose":
		for i, unit := range [...]string{mgPerDecilitre, glucose.Unit} {
			limit, in, outside := outsideSensor(r, &kind.columns[i], unit)
			if outside && kind.source == healthdata.SourceAutomatic {
				s.Unit, s.Value = in, healthdata.Number(limit)
				return s, true
			}
		}
	case "insulin_injection":
		of, known := clarityInsulins[r.text(claritySubtype)]
		if !known {
			r.refuse(claritySubtype, "Fast-Acting or Long-Acting")
			return s, false
		}
		form := "standard"
		s.Type, s.DeliveryMode, s.DeliveryForm = &of.kind, &of.mode, &form
	case "workout_duration":
		length, known := clarityLength(r)
		if !known {
			return s, false
		}
		end := healthlab.At(at.Add(length))
		number, s.Start, s.End = length.Minutes(), &s.Timestamp, &end
		if intensity, known := clarityIntensities[r.text(claritySubtype)]; known {
			s.Intensity = &intensity
		}
	}
	readValues(r, kind.columns, &number)
	if _, mgdl := r.columns[foldColumn(clarityMgdL)]; mgdl && kind.resource == "glucose" {
		s.Unit = mgPerDecilitre
	}
	s.Value = healthdata.Number(number)
	return s, number == number
}

// clarityLength reads the duration of an exercise.
func clarityLength(r *rows) (time.Duration, bool) {
	t, err := time.Parse(time.TimeOnly, r.text(clarityDuration))
	if err != nil {
		r.refuse(clarityDuration, "a length such as 00:45:00")
		return 0, false
	}
	return t.Sub(t.Truncate(24 * time.Hour)), true
}
