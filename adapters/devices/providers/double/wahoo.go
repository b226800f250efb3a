package double

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muktihari/fit/encoder"
	"github.com/muktihari/fit/profile/factory"
	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"
)

// Wahoo returns a test double of the Wahoo Cloud API v1, and a function that returns the expected data of a person.
// For every fifth workout the list also has a plan that was not carried out.
func Wahoo(o Options) (*Server, func(*Person) Truth) {
	o.PageSize = cmp.Or(o.PageSize, 30)
	s := newServer("Wahoo", paths{authorize: "/oauth/authorize", token: "/oauth/token", revoke: "DELETE /v1/permissions"}, o)
	s.limited = func(h http.Header, all []room) {
		all = padLimits(all, 3)
		h.Set("X-RateLimit-Limit", fmt.Sprintf("%d, %d, %d", all[2].Requests, all[1].Requests, all[0].Requests))
		h.Set("X-RateLimit-Remaining", fmt.Sprintf("%d, %d, %d", all[2].left, all[1].left, all[0].left))
		h.Set("X-RateLimit-Reset", "0")
		for _, r := range all { // all is sorted by window, so the longest exhausted limit counts
			if r.left == 0 {
				h.Set("X-RateLimit-Reset", r.seconds())
			}
		}
	}
	s.data("/v1/user", func(p *Person, _ url.Values) (any, error) {
		return object{
			"id": p.Number, "height": "1.78", "weight": "71.5", "first": "Test", "last": p.Name, "birth": "1985-02-03", "gender": 1,
			"updated_at": utc(p.Days[0].Date),
		}, nil
	})
	s.data("/v1/workouts", func(p *Person, q url.Values) (any, error) {
		number, err := strconv.Atoi(q.Get("page"))
		size, wrong := strconv.Atoi(q.Get("per_page"))
		if err != nil || wrong != nil || number < 1 || size < 1 || size > 100 {
			return nil, fmt.Errorf("page must be at least 1, and per_page at most 100")
		}
		list := []object{}
		for i := range p.Workouts {
			list = append(list, wahooWorkout(p, i))
			if i%5 == 0 {
				list = append(list, object{
					"id": 2_000_000 + i, "user_id": p.Number, "starts": utc(p.Workouts[i].End.Add(time.Hour)), "minutes": 60, "name": "Plan",
					"workout_type_id": 0, "workout_summary": nil,
				})
			}
		}
		slices.Reverse(list)
		size = min(size, s.opts.PageSize)
		items, _ := page(list, strconv.Itoa((number-1)*size), size)
		return object{"workouts": items, "total": len(list), "page": number, "per_page": size, "order": "descending", "sort": "starts"}, nil
	})
	s.mux.HandleFunc("GET /files/{person}/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := s.people[r.PathValue("person")]
		i, err := strconv.Atoi(strings.TrimSuffix(r.PathValue("name"), ".fit"))
		if p == nil || err != nil || i < 0 || i >= len(p.Workouts) || r.Header.Get("Authorization") != "" { // a public link gets no token
			http.NotFound(w, r)
			return
		}
		file, err := wahooFile(&p.Workouts[i])
		if err != nil {
			http.Error(w, "the file cannot be made", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(file) // an error means that the caller has disconnected
	})
	return s, wahooTruth
}

var wahooSports = map[string]int{"running": 1, "cycling": 0, "yoga": 66}

func (w *Workout) recorded() bool { return w.Distance > 0 }

func wahooWorkout(p *Person, i int) object {
	w := &p.Workouts[i]
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	seconds := w.End.Sub(w.Start).Seconds()
	summary := object{
		"id": 3_000_000 + i, "ascent_accum": text(w.Climb), "calories_accum": text(w.KCal), "distance_accum": nil, "duration_total_accum": text(seconds),
		"duration_active_accum": text(seconds - 30), "duration_paused_accum": "30.0", "heart_rate_avg": text(float64(w.AverageHR)), "power_avg": nil,
		"power_bike_np_last": nil, "speed_avg": "0.0", "time_zone": "Africa/Lagos", "manual": false, "updated_at": utc(w.End), "file": nil,
	}
	if w.recorded() {
		summary["distance_accum"] = text(w.Distance)
		summary["file"] = object{"url": fmt.Sprintf("https://cdn.wahooligan.com/files/%s/%d.fit", p.ID, i)}
	}
	return object{
		"id": 1_000_000 + i, "user_id": p.Number, "starts": utc(w.Start), "minutes": 1, "name": "Session", "workout_type_id": wahooSports[w.Sport],
		"updated_at": utc(w.End), "workout_summary": summary,
	}
}

// wahooFile returns the recording of a workout as a FIT file.
func wahooFile(w *Workout) ([]byte, error) {
	at := func(t time.Time) uint32 { return uint32(t.Unix() - 631_065_600) }
	message := func(num typedef.MesgNum, pairs ...any) proto.Message {
		m := proto.Message{Num: num}
		for i := 0; i < len(pairs); i += 2 {
			m.Fields = append(m.Fields, factory.CreateField(num, byte(pairs[i].(int))).WithValue(pairs[i+1]))
		}
		return m
	}
	list := []proto.Message{message(mesgnum.FileId, fieldnum.FileIdType, typedef.FileActivity, fieldnum.FileIdTimeCreated, at(w.End))}
	w.stream(func(second, bpm int) {
		list = append(list, message(mesgnum.Record,
			fieldnum.RecordTimestamp, at(w.Start.Add(time.Duration(second)*time.Second)), fieldnum.RecordHeartRate, uint8(bpm)))
	})
	seconds := uint32(w.End.Sub(w.Start).Seconds())
	list = append(list,
		message(mesgnum.Session, fieldnum.SessionTimestamp, at(w.End), fieldnum.SessionStartTime, at(w.Start),
			fieldnum.SessionTotalElapsedTime, seconds*1000, fieldnum.SessionSport, typedef.SportCycling),
		message(mesgnum.Activity, fieldnum.ActivityTimestamp, at(w.End), fieldnum.ActivityLocalTimestamp, at(w.End.Add(time.Hour))))
	var b bytes.Buffer
	err := encoder.New(&b, encoder.WithProtocolVersion(proto.V2)).Encode(&proto.FIT{Messages: list})
	return b.Bytes(), err
}

func wahooTruth(p *Person) Truth {
	t := Truth{}
	for i := range p.Workouts {
		w := &p.Workouts[i]
		t.workout(w)
		t.put("workouts", stamp(w.Start)+".average", float64(w.AverageHR))
		if w.recorded() {
			w.stream(func(second, bpm int) {
				t.put("workout_stream", stamp(w.Start.Add(time.Duration(second)*time.Second)), float64(bpm))
			})
		}
	}
	t.put("profile", "profile.height", 178)
	t.put("profile", "profile.female", 1)
	t.put("weight", stamp(p.Days[0].Date), 71.5)
	return t
}

// WahooMessage returns the webhook message about p.Workouts[i]. token is the webhook token.
func WahooMessage(p *Person, i int, token string) []byte {
	w := wahooWorkout(p, i)
	summary := w["workout_summary"].(object)
	delete(w, "workout_summary")
	delete(w, "user_id")
	summary["workout"] = w
	body, _ := json.Marshal(object{ //nolint:errchkjson // texts and numbers
		"event_type": "workout_summary", "webhook_token": token, "user": object{"id": p.Number}, "workout_summary": summary,
	})
	return body
}
