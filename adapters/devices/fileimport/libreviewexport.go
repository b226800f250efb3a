package fileimport

import (
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// libreViewReadings reads the glucose data of a LibreView account: sensor and strip readings and entries that a person
// typed. One or two lines precede the header. Times have no zone.
var libreViewReadings = csvFile{
	format: LibreViewExport, name: "*_glucose_*.csv", read: readLibreView, local: true, preamble: 3, dateOf: libreTime,
	keys: []string{"Serial Number", libreTime, libreType},
	also: columnNames(
		"Serial Number|Seriennummer|Número de serie|Número de serial|Numéro de série|Serienummer",
		libreTime+"|Meter Timestamp|Gerätezeitstempel|Sello de tiempo del dispositivo|Horodatage de l'appareil|Tijdstempel apparaat",
		libreType+"|Aufzeichnungstyp|Tipo de registro|Type d'enregistrement|Gegevenstype",
		"Historic Glucose mg/dL|Glukosewert-Verlauf mg/dL|Historial de glucosa mg/dL|Historique de la glycémie mg/dL|Historische glucose mg/dL",
		"Historic Glucose mmol/L|Glukosewert-Verlauf mmol/L|Historial de glucosa mmol/L|Historique de la glycémie mmol/L|Historische glucose mmol/L",
		"Scan Glucose mg/dL|Glukose-Scan mg/dL|Escaneo de glucosa mg/dL|Numérisation de la glycémie mg/dL",
		"Scan Glucose mmol/L|Glukose-Scan mmol/L|Escaneo de glucosa mmol/L|Numérisation de la glycémie mmol/L",
		"Strip Glucose mg/dL|Glukose-Teststreifen mg/dL|Tira reactiva para glucosa mg/dL|Glycémie par bandelette mg/dL",
		"Strip Glucose mmol/L|Glukose-Teststreifen mmol/L|Tira reactiva para glucosa mmol/L|Glycémie par bandelette mmol/L",
		libreRapid+"|Schnellwirkendes Insulin (Einheiten)|Insulina de acción rápida (unidades)|Insuline à action rapide (unités)|Snelwerkende insuline (eenheden)",
		libreLong+"|Long-Acting Insulin Value (units)|Depotinsulin (Einheiten)|Insulina de acción larga (unidades)|Insuline à action longue (unités)|Langwerkende insuline (eenheden)",
		libreCarbs+"|Kohlenhydrate (Gramm)|Carbohidratos (gramos)|Glucides (grammes)|Koolhydraten (gram)",
		libreNotes+"|Notizen|Notas|Remarques|Notities",
		"Non-numeric Food|Nicht numerische Nahrungsdaten|Alimento no numérico|Alimentation sans valeur numérique|Niet-numeriek voedsel",
		"Non-numeric Rapid-Acting Insulin|Nicht numerisches schnellwirkendes Insulin|Insulina de acción rápida no numérica|Insuline à action rapide sans valeur numérique|Niet-numerieke snelwerkende insuline",
		"Non-numeric Long-Acting Insulin|Nicht numerisches Depotinsulin|Insulina de acción larga no numérica|Insuline à action longue sans valeur numérique|Niet-numerieke langwerkende insuline",
		"Carbohydrates (servings)|Kohlenhydrate (Portionen)|Carbohidratos (porciones)|Glucides (portions)|Koolhydraten (porties)",
		"Ketone mmol/L|Keton mmol/L|Cuerpos cetónicos mmol/L|Cétone mmol/L",
		"Meal Insulin (units)|Mahlzeiteninsulin (Einheiten)|Comida e insulina (unidades)|Insuline repas (unités)|Maaltijdinsuline (eenheden)",
		"Correction Insulin (units)|Korrekturinsulin (Einheiten)|Insulina de corrección (unidades)|Correction insuline (unités)|Correctie insuline (eenheden)",
		"User Change Insulin (units)|Insulin-Änderung durch Anwender (Einheiten)|Insuline modifiée par l'utilisateur (unités)|Wijzigen insuline gebruiker (eenheden)",
	),
}

const (
	libreTime  = "Device Timestamp"
	libreType  = "Record Type"
	libreRapid = "Rapid-Acting Insulin (units)"
	libreLong  = "Long-Acting Insulin (units)"
	libreCarbs = "Carbohydrates (grams)"
	libreNotes = "Notes"
)

// libreColumn is a column whose values become samples.
type libreColumn struct {
	value[float64]
	resource, unit string
	source         healthdata.SourceType
	kind, mode     string // kind of insulin and its delivery
}

var libreColumns = libreValues()

// libreValues returns the columns that become samples.
func libreValues() []libreColumn {
	set := func(v *float64, n float64) { *v = n }
	columns := []libreColumn{
		{value: value[float64]{libreRapid, 0, 1000, set}, resource: "insulin_injection", source: healthdata.SourceApp, kind: "rapid_acting", mode: "bolus"},
		{value: value[float64]{libreLong, 0, 1000, set}, resource: "insulin_injection", source: healthdata.SourceApp, kind: "long_acting", mode: "basal"},
		{value: value[float64]{libreCarbs, 0, 5000, set}, resource: "carbohydrates", source: healthdata.SourceApp},
	}
	for _, c := range []struct {
		name   string
		source healthdata.SourceType
	}{{"Historic Glucose", healthdata.SourceAutomatic}, {"Scan Glucose", healthdata.SourceManualScan}, {"Strip Glucose", healthdata.SourceFingerprick}} {
		columns = append(columns,
			libreColumn{value: value[float64]{c.name + " mg/dL", 10, 1000, set}, resource: "glucose", unit: mgPerDecilitre, source: c.source},
			libreColumn{value: value[float64]{c.name + " mmol/L", 0.5, 56, set}, resource: "glucose", source: c.source})
	}
	return columns
}

// libreLeftOut maps columns that are not imported to their name in the report.
var libreLeftOut = map[string]string{
	"Non-numeric Food": "food without an amount", "Carbohydrates (servings)": "carbohydrates in servings",
	"Non-numeric Rapid-Acting Insulin": "insulin without an amount", "Non-numeric Long-Acting Insulin": "insulin without an amount",
	"Ketone mmol/L": "ketone", "Meal Insulin (units)": "part of a dose of insulin", "Correction Insulin (units)": "part of a dose of insulin",
	"User Change Insulin (units)": "part of a dose of insulin",
}

// readLibreView stores glucose, insulin, carbohydrates and notes.
func readLibreView(r *rows) error {
	if err := libreUnits(r); err != nil {
		return err
	}
	sources := []healthdata.SourceType{healthdata.SourceAutomatic, healthdata.SourceManualScan, healthdata.SourceFingerprick, healthdata.SourceApp}
	batches := map[healthdata.SourceType]*batch{}
	for _, t := range sources {
		batches[t] = newBatch(r.out, r.out.recordedBy(t))
	}
	err := r.each(func() error {
		at, ok := libreInstant(r)
		if !ok {
			return nil
		}
		for i := range libreColumns {
			c := &libreColumns[i]
			number, unit, outside := nan, c.unit, false
			if c.resource == "glucose" && c.source != healthdata.SourceFingerprick {
				number, unit, outside = outsideSensor(r, &c.value, c.unit)
			}
			if !outside {
				number, unit = nan, c.unit
				readValues(r, []value[float64]{c.value}, &number)
			}
			if number != number {
				continue
			}
			s := sampleAt(at, healthdata.Number(number))
			s.Unit = unit
			if c.kind != "" {
				s.Type, s.DeliveryMode, s.DeliveryForm = &c.kind, &c.mode, new("standard")
			}
			if err := batches[c.source].sample(c.resource, s); err != nil {
				return err
			}
		}
		for column, what := range libreLeftOut {
			if r.text(column) != "" {
				r.skipRow(what)
			}
		}
		if text := r.text(libreNotes); text != "" {
			s := sampleAt(at, healthdata.Text(text))
			s.Tags = []string{"unspecified"}
			return batches[healthdata.SourceApp].sample("note", s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range sources {
		if err := batches[t].flush(); err != nil {
			return err
		}
	}
	return nil
}

// libreUnits returns an error unless the header has exactly one of the columns for sensor glucose in mg/dL and in
// mmol/L.
func libreUnits(r *rows) error {
	_, mgdl := r.columns[foldColumn("Historic Glucose mg/dL")]
	_, mmoll := r.columns[foldColumn("Historic Glucose mmol/L")]
	if mgdl == mmoll {
		return &FileError{Format: LibreViewExport, Line: r.before + 1, Msg: "the header must have one of the columns Historic Glucose mg/dL and Historic Glucose mmol/L"}
	}
	return nil
}

// libreInstant reads the time of a row, in Options.Zone. It returns false if the time is malformed, out of range, or in
// an hour that occurs twice or not at all.
func libreInstant(r *rows) (time.Time, bool) {
	clock, ok := clockOf(r.text(libreTime), r.monthFirst)
	if !ok {
		r.refuse(libreTime, "a time such as 28-03-2026 22:50, with the day and the month in the order of the file")
		return time.Time{}, false
	}
	at := clockTimes(clock, r.out.opts.Zone)
	if len(at) != 1 {
		r.skipRow("row of the hour in which the clock changed")
		return time.Time{}, false
	}
	if !r.out.inTime(at[0].UnixMicro()) {
		r.refuse(libreTime, "a time from 1990 to a day ahead")
		return time.Time{}, false
	}
	return at[0], true
}

// digitDate matches a time with a date of digits that ends with the year, of four or two digits.
var digitDate = regexp.MustCompile(`^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})[ T,]+(.*)$`)

// clockOf reads a date and time without an offset as if it were UTC. monthFirst is the order of a date such as
// 03-04-2026; a date that starts with the year is read without it.
func clockOf(text string, monthFirst bool) (time.Time, bool) {
	if parts := digitDate.FindStringSubmatch(plainText(text)); parts != nil {
		day, month, year := parts[1], parts[2], parts[3]
		if monthFirst {
			day, month = month, day
		}
		if len(year) == 2 {
			year = "20" + year
		}
		text = year + "-" + month + "-" + day + " " + parts[4]
	}
	t, zoned, ok := readTime(text)
	return t, ok && !zoned
}

// plainMajority is the factor by which the dates that prove one order of day and month must outnumber those that prove
// the other.
const plainMajority = 10

// monthsFirst reports whether the dates of a file have the month before the day. A date that is valid in only one
// order proves that order. A file without such a date needs Options.DateOrder, and is refused without it.
func monthsFirst(out *output, f *csvFile, r io.Reader) (bool, error) {
	unheard := *out
	unheard.rep = &Report{}
	v, err := newRows(&unheard, f, r, nil)
	if err != nil {
		return false, err
	}
	var day, month, open int
	err = v.each(func() error {
		text := v.text(f.dateOf)
		if digitDate.FindStringSubmatch(plainText(text)) == nil {
			return nil
		}
		_, asDay := clockOf(text, false)
		_, asMonth := clockOf(text, true)
		switch {
		case asDay && asMonth:
			open++
		case asDay:
			day++
		case asMonth:
			month++
		}
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case day > 0 && day >= plainMajority*month:
		return false, nil
	case month > 0 && month >= plainMajority*day:
		return true, nil
	case day+month+open == 0 || out.opts.DateOrder == DayFirst:
		return false, nil
	case out.opts.DateOrder == MonthFirst:
		return true, nil
	}
	return false, &FileError{
		Format: f.format, Line: v.before + 1,
		Msg: out.opts.named("the dates of the file do not show whether the day or the month is first ("+strconv.Itoa(day)+" rows have the day first, "+strconv.Itoa(month)+
			" the month, "+strconv.Itoa(open)+" fit both): the order must be set to day_first or month_first", "DateOrder"),
	}
}
