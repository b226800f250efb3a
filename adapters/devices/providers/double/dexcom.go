package double

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Dexcom returns a test double of the Dexcom Web API v3, and a function that returns the expected data of a person.
// Every other person has a receiver, whose times have no offset.
func Dexcom(o Options) (*Server, func(*Person) Truth) {
	s := newServer("Dexcom", paths{authorize: "/v2/oauth2/login", token: "/v2/oauth2/token"}, o)
	texts := func(p *Person, at time.Time) (system, display string) {
		local := at.In(time.FixedZone("", p.Offset))
		if p.Number%2 == 0 {
			return at.UTC().Format("2006-01-02T15:04:05"), local.Format("2006-01-02T15:04:05")
		}
		return at.UTC().Format("2006-01-02T15:04:05Z"), local.Format(time.RFC3339)
	}
	list := func(path string, all func(p *Person, from, to time.Time) []object) {
		s.data("/v3/users/self/"+path, func(p *Person, q url.Values) (any, error) {
			from, err := time.Parse("2006-01-02T15:04:05", q.Get("startDate"))
			to, bad := time.Parse("2006-01-02T15:04:05", q.Get("endDate"))
			if err != nil || bad != nil || to.Sub(from) > 30*24*time.Hour {
				return nil, errors.New("startDate and endDate: must be times without a zone, at most 30 days apart")
			}
			records := all(p, from, to)
			slices.Reverse(records)
			return object{"recordType": path, "recordVersion": "3.0", "userId": p.ID, "records": records}, nil
		})
	}
	s.data("/v3/users/self/dataRange", func(p *Person, _ url.Values) (any, error) { return object{"userId": p.ID, "egvs": nil}, nil })
	list("egvs", func(p *Person, from, to time.Time) []object {
		out := []object{}
		for _, g := range p.Glucose {
			if g.At.Before(from) || !g.At.Before(to) {
				continue
			}
			system, display := texts(p, g.At)
			out = append(out, object{
				"recordId": g.ID, "systemTime": system, "displayTime": display, "value": g.Value, "unit": "mg/dL", "status": "ok",
				"trend": "flat", "trendRate": 0.1, "rateUnit": "mg/dL/min", "transmitterId": "hash", "transmitterGeneration": "g7", "displayDevice": "iOS",
			})
		}
		return out
	})
	list("calibrations", func(p *Person, from, to time.Time) []object {
		out := []object{}
		p.calibrations(func(at time.Time, mmol float64) {
			if !at.Before(from) && at.Before(to) {
				system, display := texts(p, at)
				out = append(out, object{"recordId": "c" + stamp(at), "systemTime": system, "displayTime": display, "value": mmol, "unit": "mmol/L"})
			}
		})
		return out
	})
	s.data("/v3/users/self/devices", func(p *Person, _ url.Values) (any, error) {
		return object{"recordType": "device", "userId": p.ID, "records": []object{{"transmitterGeneration": "g7", "displayDevice": "iOS", "displayApp": "G7"}}}, nil
	})
	list("events", func(p *Person, from, to time.Time) []object {
		out := []object{}
		for _, e := range p.events() {
			if e.At.Before(from) || !e.At.Before(to) {
				continue
			}
			system, display := texts(p, e.At)
			status, subType := "created", any(nil)
			if e.Deleted {
				status = "deleted"
			}
			if e.SubType != "" {
				subType = e.SubType
			}
			unit := map[string]string{"carbs": "grams", "insulin": "units", "exercise": "minutes"}[e.Kind]
			value := any(strconv.FormatFloat(e.Value, 'f', -1, 64))
			if e.Kind == "health" {
				value, unit = nil, "unknown"
			}
			out = append(out, object{
				"recordId": e.ID, "systemTime": system, "displayTime": display, "eventStatus": status, "eventType": e.Kind, "eventSubType": subType,
				"value": value, "unit": unit,
			})
		}
		return out
	})
	return s, dexcomTruth
}

func dexcomTruth(p *Person) Truth {
	t := Truth{}
	for _, g := range p.Glucose {
		t.put("glucose", stamp(g.At), float64(g.Value)/18.0182)
	}
	p.calibrations(func(at time.Time, mmol float64) { t.put("glucose", stamp(at), mmol) })
	for _, e := range p.events() {
		switch {
		case e.Deleted:
		case e.Kind == "exercise":
			t.put("workout_duration", stamp(e.At), e.Value)
		case e.Kind == "health":
			t.put("note", stamp(e.At), 0)
		case e.Kind == "carbs":
			t.put("carbohydrates", stamp(e.At), e.Value)
		case e.SubType == "fastActing":
			t.put("insulin_injection", stamp(e.At)+" rapid_acting", e.Value)
		default:
			t.put("insulin_injection", stamp(e.At)+" long_acting", e.Value)
		}
	}
	return t
}

// events returns the events of p, an exercise event for each workout and, every tenth day, a health event.
func (p *Person) events() []Event {
	out := slices.Clone(p.Events)
	for i := range p.Workouts {
		w := &p.Workouts[i]
		out = append(out, Event{
			ID: "e" + w.ID, At: w.Start, Kind: "exercise", SubType: []string{"light", "medium", "heavy"}[i%3], Value: w.End.Sub(w.Start).Minutes(),
			Deleted: i%9 == 8,
		})
	}
	for i := 0; i < len(p.Days); i += 10 {
		out = append(out, Event{ID: "h" + stamp(p.Days[i].Date), At: p.Days[i].Date.Add(8 * time.Hour), Kind: "health", SubType: "stress"})
	}
	return out
}

func (p *Person) calibrations(add func(at time.Time, mmol float64)) {
	for i := 0; i < len(p.Days); i += 10 {
		add(p.Days[i].Date.Add(7*time.Hour+5*time.Minute), 5+float64(i%30)/10)
	}
}
