package withings

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// heart lists the collections of electrocardiograms.
var heart = []rest.Collection{
	{
		Name: "heart_list", Method: http.MethodPost, Path: "/v2/heart", Range: instants, Pages: pages, Items: "body.series",
		Query: action("list"), Key: rest.KeyOf("ecg.signalid"), Keep: []string{"timestamp", "timezone", "ecg", "heart_rate", "model", "modelid", "deviceid", "hash_deviceid"},
		Stored: []string{"electrocardiogram", "blood_pressure"}, Read: rest.Each(readHeart),
	},
	{
		Name: "heart_get", Scopes: metrics, For: "heart_list", Method: http.MethodPost, Path: "/v2/heart", Items: "body", Query: action("get"),
		Ask:      func(q url.Values, signal string) { q.Set("signalid", signal) },
		Messages: []string{"54"}, Resources: []string{"electrocardiogram", "electrocardiogram_voltage"}, Read: rest.Each(readECG),
	},
}

// rhythms lists the classifications of an electrocardiogram by the provider's number.
var rhythms = []string{"sinus_rhythm", "atrial_fibrillation", "inconclusive"}

// measurement is an item of the list of electrocardiograms.
type measurement struct {
	hardware
	At   unix     `json:"timestamp"`
	Zone string   `json:"timezone"`
	HR   *float64 `json:"heart_rate"`
	ECG  struct {
		ID     rest.ID `json:"signalid"`
		Rhythm *int    `json:"afib"`
	} `json:"ecg"`
	Pressure struct {
		Diastole *float64 `json:"diastole"`
		Systole  *float64 `json:"systole"`
	} `json:"bloodpressure"`
}

// summary returns the electrocardiogram without its voltages. id is the signalid.
func (v *measurement) summary(id string) *healthdata.Electrocardiogram {
	e := &healthdata.Electrocardiogram{
		Head: healthdata.Head{ExternalID: id}, SessionStart: v.At.time(), SessionEnd: v.At.time(), HeartRateMean: rest.Round(rest.Positive(v.HR)),
		TimeZone: rest.Text(v.Zone),
	}
	if r := v.ECG.Rhythm; r != nil && *r >= 0 && *r < len(rhythms) {
		e.Classification = &rhythms[*r]
	}
	return e
}

// readHeart reads an item of a stored page of the list.
func readHeart(v *measurement, out *rest.Batch) {
	out.Zone(v.Zone)
	source := orUnknown(v.device(out), healthdata.SourceWatch)
	if id := v.ECG.ID.String(); id != "" {
		out.Summary("electrocardiogram", source, v.summary(id))
	}
	if p := &v.Pressure; p.Systole != nil && p.Diastole != nil {
		out.Sample("blood_pressure", orUnknown(source, healthdata.SourceCuff), healthdata.Sample{
			Timestamp: v.At.time(), Unit: "mmHg", Systolic: p.Systole, Diastolic: p.Diastole,
		})
	}
}

func readECG(v *struct {
	Signal []float64 `json:"signal"`
	Hz     float64   `json:"sampling_frequency"`
	HR     *float64  `json:"heart_rate"`
}, out *rest.Batch,
) {
	of := measurement{HR: v.HR}
	if json.Unmarshal(out.Joined("heart_list", out.ID()), &of) != nil && !out.Stored() {
		return
	}
	if v.Hz <= 0 {
		out.Problem("missing", "must be a number of hertz above 0", "sampling_frequency")
		return
	}
	out.Zone(of.Zone)
	source := orUnknown(of.device(out), healthdata.SourceWatch)
	at := func(i int) healthlab.Time {
		return healthlab.At(of.At.time().Add(time.Duration(float64(i) / v.Hz * float64(time.Second))))
	}
	e := of.summary(out.ID())
	e.SessionEnd, e.VoltageSampleCount, e.SamplingFrequencyHz = at(len(v.Signal)), int64(len(v.Signal)), &v.Hz
	out.Summary("electrocardiogram", source, e)
	for i, microvolts := range v.Signal {
		out.Sample("electrocardiogram_voltage", source, healthdata.Sample{
			Timestamp: at(i), Type: rest.Ptr("lead_1"), Unit: "uV", Value: healthdata.Number(microvolts),
		})
	}
}
