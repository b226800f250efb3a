package double

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Dexcom returns a double of the Dexcom Web API v3 and the truth of its people. Every other
// person has a receiver, whose texts have no offset.
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
	list("calibrations", func(*Person, time.Time, time.Time) []object { return []object{} })
	list("events", func(p *Person, from, to time.Time) []object {
		out := []object{}
		for _, e := range p.Events {
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
			unit := map[string]string{"carbs": "grams", "insulin": "units"}[e.Kind]
			out = append(out, object{
				"recordId": e.ID, "systemTime": system, "displayTime": display, "eventStatus": status, "eventType": e.Kind, "eventSubType": subType,
				"value": strconv.FormatFloat(e.Value, 'f', -1, 64), "unit": unit,
			})
		}
		return out
	})
	return s, func(p *Person) Truth {
		t := Truth{}
		for _, g := range p.Glucose {
			t.put("glucose", stamp(g.At), float64(g.Value)/18.0182)
		}
		for _, e := range p.Events {
			switch {
			case e.Deleted:
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
}
