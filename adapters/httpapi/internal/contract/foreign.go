package contract

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Foreign checks that a team cannot tell another team's ids from ids that do not exist. For each operation it sends n
// requests with the credentials of p.Header and with ids of another team: the values of p.Path whose names are in
// owned. It sends each request again with ids that do not exist, and returns each answer that differs, and each name of
// owned that is in no request. It skips the operations in except, which maps operationIds to reasons. The same seed
// makes the same requests.
func Foreign(ctx context.Context, h http.Handler, p Probes, owned []string, except map[string]string, seed uint64, n int) ([]string, error) {
	d, err := Read(p.Document)
	if err != nil {
		return nil, err
	}
	f := fuzzer{doc: d, probes: p, r: rand.New(rand.NewPCG(seed, 2)), calm: true}
	ids := map[string]string{}
	for _, name := range owned {
		ids[p.Path[name]] = name
	}
	var out []string
	tried := map[string]bool{}
	for _, op := range d.ops {
		if except[op.ID] != "" {
			continue
		}
		for range n {
			pr := f.request(op)
			used := slices.DeleteFunc(slices.Sorted(maps.Keys(ids)), func(id string) bool { return !strings.Contains(pr.target+pr.body, id) })
			if len(used) == 0 {
				continue
			}
			for _, id := range used {
				tried[ids[id]] = true
			}
			// A difference that the first request caused, such as a taken name, is not a difference between the ids.
			told := true
			for range 2 {
				told = told && f.differ(ctx, h, op, pr, used)
			}
			if !told {
				continue
			}
			pr.header = f.anotherRequest(pr.header)
			got, _ := pr.run(ctx, h, op, p)
			out = append(out, fmt.Sprintf("%s: %d %s: %s %s", op.ID, got.Status, got.Body, pr.target, pr.body))
		}
	}
	for _, name := range owned {
		if !tried[name] {
			out = append(out, name+" is in no request")
		}
	}
	return out, nil
}

// differ sends a request, and the same request with unknown ids in place of ids. It reports whether the answers differ
// by more than these ids. Of two successful answers it compares only the status, and which of ids they contain.
func (f *fuzzer) differ(ctx context.Context, h http.Handler, op *Operation, pr probe, ids []string) bool {
	other := pr
	pr.header, other.header = f.anotherRequest(pr.header), f.anotherRequest(pr.header)
	back := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		unknown := f.id()
		other.target, other.body = strings.ReplaceAll(other.target, id, unknown), strings.ReplaceAll(other.body, id, unknown)
		back = append(back, unknown, id)
	}
	got, panicked := pr.run(ctx, h, op, f.probes)
	want, _ := other.run(ctx, h, op, f.probes)
	answer := strings.NewReplacer(back...).Replace(string(want.Body))
	switch {
	case panicked != "" || got.Status != want.Status:
		return true
	case got.Status >= http.StatusBadRequest:
		return string(got.Body) != answer
	}
	return slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(string(got.Body), id) != strings.Contains(answer, id) })
}

func (f *fuzzer) id() string {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], f.r.Uint64())
	binary.LittleEndian.PutUint64(id[8:], f.r.Uint64())
	return id.String()
}

// anotherRequest returns headers whose idempotency key is new.
func (f *fuzzer) anotherRequest(header http.Header) http.Header {
	out := header.Clone()
	for name := range out {
		if strings.Contains(name, "Idempotency") {
			out.Set(name, f.id())
		}
	}
	return out
}
