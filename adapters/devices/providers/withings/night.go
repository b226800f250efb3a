package withings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// asleep lists the collections of nights.
var asleep = []rest.Collection{
	{
		Name: "sleep_getsummary", Scopes: activity, Method: http.MethodPost, Path: "/v2/sleep", Range: days, Pages: pages, Items: "body.series",
		Query: action("getsummary", "asleepduration", "lightsleepduration", "deepsleepduration", "remsleepduration", "wakeupduration",
			"sleep_latency", "sleep_efficiency", "sleep_score", "hr_average", "hr_min", "rr_average"),
		Key: nightKey, Keep: []string{"id", "startdate", "enddate", "timezone", "model", "model_id", "hash_deviceid"},
		Messages: []string{"44"}, Resources: []string{"sleep"}, Read: rest.Each(readSleep),
	},
	{
		Name: "sleep_get", Scopes: activity, For: "sleep_getsummary", Method: http.MethodPost, Path: "/v2/sleep", Ask: setNightRange, Items: "body",
		Query:    action("get", "hr", "rr", "rmssd"),
		Messages: []string{"44"}, Resources: []string{"sleep_cycle", "heartrate", "respiratory_rate", "hrv"}, Read: rest.Each(readNight),
	},
}

// night holds the fields that the summary, the stages and the series of a night share.
type night struct {
	hardware
	ID    rest.ID `json:"id"`
	Start unix    `json:"startdate"`
	End   unix    `json:"enddate"`
	Zone  string  `json:"timezone"`
}

// nightKey returns a key for a night: its id, start and end, separated by spaces; empty if it has no id.
func nightKey(item json.RawMessage) string {
	var v night
	if json.Unmarshal(item, &v) != nil || v.ID == "" {
		return ""
	}
	return fmt.Sprintf("%s %d %d", v.ID, v.Start, v.End)
}

func setNightRange(q url.Values, key string) {
	if part := strings.Fields(key); len(part) == 3 {
		q.Set("startdate", part[1])
		q.Set("enddate", part[2])
	}
}

func readSleep(v *struct {
	night
	Completed *bool `json:"completed"`
	Data      details[struct {
		Asleep  *float64 `json:"asleepduration"`
		Light   *float64 `json:"lightsleepduration"`
		Deep    *float64 `json:"deepsleepduration"`
		REM     *float64 `json:"remsleepduration"`
		Awake   *float64 `json:"wakeupduration"`
		Latency *float64 `json:"sleep_latency"`
		Ratio   *float64 `json:"sleep_efficiency"`
		Score   *float64 `json:"sleep_score"`
		HR      *float64 `json:"hr_average"`
		HRMin   *float64 `json:"hr_min"`
		Breath  *float64 `json:"rr_average"`
	}] `json:"data"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	x := &v.Data.v
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.ID.String()}, BedtimeStart: v.Start.time(), BedtimeStop: v.End.time(), Total: rest.Round(x.Asleep), Light: rest.Round(x.Light),
		Deep: rest.Round(x.Deep), REM: rest.Round(x.REM), Awake: rest.Round(x.Awake), Latency: rest.Round(x.Latency), Efficiency: rest.Times(x.Ratio, 100), Score: rest.Round(rest.Positive(x.Score)),
		HRAverage: rest.Round(rest.Positive(x.HR)), HRLowest: rest.Round(rest.Positive(x.HRMin)), RespiratoryRate: rest.Positive(x.Breath),
	}
	if v.Completed != nil {
		s.State = rest.Ptr("confirmed")
		if !*v.Completed {
			s.State = rest.Ptr("tentative")
		}
	}
	out.Summary("sleep", orUnknown(v.device(out), healthdata.SourceAutomatic), s)
}

// states maps the states of segments to sleep stages. Other states are gaps.
var states = map[int]healthdata.SleepStage{
	0: healthdata.SleepStageAwake, 1: healthdata.SleepStageLight, 2: healthdata.SleepStageDeep, 3: healthdata.SleepStageREM,
	4: healthdata.SleepStageByHand, 5: healthdata.SleepStageMissing,
}

type segment struct {
	Start unix             `json:"startdate"`
	End   unix             `json:"enddate"`
	State int              `json:"state"`
	Hash  string           `json:"hash_deviceid"`
	HR    byTime[*float64] `json:"hr"`
	Rate  byTime[*float64] `json:"rr"`
	RMSSD byTime[*float64] `json:"rmssd"`
}

// readNight reads the segments of a night, which are not sorted. On a stored page, the night lasts from the first to
// the last segment.
func readNight(v *struct {
	Series rest.List[segment] `json:"series"`
}, out *rest.Batch,
) {
	list := v.Series.In(out, "series")
	slices.SortFunc(list, func(a, b segment) int { return cmp.Compare(a.Start, b.Start) })
	var of night
	if json.Unmarshal(out.Joined("sleep_getsummary", out.ID()), &of) != nil {
		if len(list) == 0 || !out.Stored() {
			return
		}
		of.Start = list[0].Start
		for i := range list {
			of.End = max(of.End, list[i].End)
		}
	}
	out.Zone(of.Zone)
	source, stages := orUnknown(of.device(out), healthdata.SourceAutomatic), rest.Stages{}
	series := func(resource, unit string, values byTime[*float64]) {
		for _, at := range slices.Sorted(maps.Keys(values)) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: at.time(), Unit: unit, Value: rest.Number(rest.Positive(values[at]))})
		}
	}
	for i := range list {
		x := &list[i]
		if x.Hash != "" && of.Hash != "" && x.Hash != of.Hash {
			continue // a segment of another device
		}
		stage, known := states[x.State]
		if start, end := max(x.Start, of.Start), min(x.End, of.End); known && start < end {
			stages.Add(int64(start-of.Start), int64(end-of.Start), stage)
		}
		series("heartrate", "bpm", x.HR)
		series("respiratory_rate", "bpm", x.Rate)
		series("hrv", "rmssd", x.RMSSD)
	}
	out.Cycle(source, of.ID.String(), of.Start.time(), of.End.time(), &stages)
}
