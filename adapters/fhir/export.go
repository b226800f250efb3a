package fhir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
)

// Bulk exports. The kick-off request stores only the ids of the exported persons and the parameters. The resources
// of a file are read when the file is downloaded, so that no data of a person is stored twice, and no file contains
// erased data.

// BlobStore stores the records of exports: ids and parameters, no values of a person. A labreport.BlobStore
// implements it.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

const (
	// shard is the largest number of persons whose resources are in one file.
	shard = 500
	// exportKept is how long an export can be downloaded after its kick-off.
	exportKept = 7 * 24 * time.Hour
	// exportsKept is the largest number of exports of a team. A new export replaces the oldest.
	exportsKept = 20
	ndjson      = "application/fhir+ndjson"
	// deletedType replaces the resource type in the URLs of files that list deleted Patients. removedType replaces it in
	// the URLs of files that list other resources which no longer exist.
	deletedType = "Deleted"
	removedType = "Removed"
)

var exportParams = []string{"_outputFormat", "_since", "_type", "_typeFilter", "interval"}

// export is the stored record of an export.
type export struct {
	ID      uuid.UUID
	At      time.Time
	Request string
	Since   time.Time
	Types   []string
	By      interval
	Filters []string         `json:",omitempty"` // searches of _typeFilter, which limit the resources of their type
	Key     uuid.UUID        // id of the API key that began the export; zero if the key has none
	Bound   healthlab.UserID // user of a caller that may act for one user only; else zero
	Persons []uuid.UUID
	Deleted []uuid.UUID
}

func exportKey(team healthlab.TeamID, id string) string {
	return "fhir-exports/" + team.String() + "/" + id
}

// putJSON stores v as JSON under an id in the export records of a team.
func (s *server) putJSON(ctx context.Context, team healthlab.TeamID, id string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode export: %w", err)
	}
	if err := s.Exports.Put(ctx, team, healthlab.UserID{}, exportKey(team, id), bytes.NewReader(b)); err != nil {
		return fmt.Errorf("store export: %w", err)
	}
	return nil
}

// getJSON decodes the export record of a team with an id into v. It returns NotFound if the record does not exist.
func (s *server) getJSON(ctx context.Context, team healthlab.TeamID, id string, v any) error {
	r, err := s.Exports.Get(ctx, team, healthlab.UserID{}, exportKey(team, id))
	if err != nil {
		return fmt.Errorf("read export: %w", err)
	}
	err = json.NewDecoder(r).Decode(v)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read export: %w", err)
	}
	return nil
}

// kickOff begins an export of the persons of a team. If the path names a Group, it must be the Group of the team.
func (s *server) kickOff(w http.ResponseWriter, r *http.Request, by caller) error {
	if id := r.PathValue("id"); id != "" && !isGroup(by, id) {
		return refuseUnknown(w, "Group")
	}
	params, broken, err := operationParams(r, by)
	if err != nil {
		return err
	}
	l, filters, problems := s.readExport(params, handlingOf(r))
	problems = append(problems, broken...)
	if !prefers(r, "respond-async") {
		problems = append(problems, healthlab.Problem{Path: []any{"header", "Prefer"}, Code: "invalid", Msg: "must be respond-async"})
	}
	if len(problems) > 0 {
		return refuse(w, httpapi.Refusal{Status: http.StatusBadRequest, Problems: problems})
	}
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	if !s.restrict(l, may) {
		return lacking(w, "system/*.read, or those of the types")
	}
	x := &export{ID: s.NewID(), At: s.Now().UTC(), Since: l.since, Types: l.types, By: l.interval, Filters: filters, Key: by.Key, Bound: by.User, Request: s.URL + r.URL.Path}
	if params != "" {
		x.Request += "?" + params
	}
	if err := s.setPersons(r.Context(), by, x); err != nil {
		return err
	}
	if err := s.putJSON(r.Context(), by.Team, x.ID.String(), x); err != nil {
		return err
	}
	if err := s.addToList(r.Context(), by.Team, x); err != nil {
		return err
	}
	w.Header().Set("Content-Location", s.URL+"/$export-status/"+x.ID.String())
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// readExport reads the parameters of an export. filters are the searches of _typeFilter, unparsed.
func (s *server) readExport(params string, handling handling) (l *selection, filters []string, problems []healthlab.Problem) {
	values, problems := parseParams(params, "$export", exportParams, handling)
	l = &selection{}
	var ignored []string
	for name, list := range values {
		for _, value := range list {
			msg := ""
			switch {
			case name == "_typeFilter":
				for _, one := range filtersOf(value) {
					_, _, wrong := s.readFilter(one)
					switch {
					case wrong == "":
						filters = append(filters, one)
					case handling == lenient:
						ignored = append(ignored, typeOf(one))
					default:
						msg = wrong
					}
				}
			case name == "_outputFormat":
				if !slices.Contains([]string{ndjson, "application/ndjson", "ndjson"}, plus(value)) {
					msg = "must be application/fhir+ndjson, application/ndjson or ndjson"
				}
			default:
				msg = l.parseParam(s, &kind{params: []string{"interval"}}, name, value)
			}
			if msg != "" {
				problems = append(problems, parameterProblem(name, msg))
			}
		}
	}
	// Without its ignored filter, all resources of a type are sent.
	filters = slices.DeleteFunc(filters, func(one string) bool { return slices.Contains(ignored, typeOf(one)) })
	if l.interval == sampled {
		problems = append(problems, parameterProblem("interval", "must be day or hour"))
	}
	return l, filters, problems
}

// setPersons sets x.Persons to the users of the team, or to the one user for whom the caller may act. For a whole team,
// and with x.Since, it also sets x.Deleted.
func (s *server) setPersons(ctx context.Context, by caller, x *export) error {
	if !by.User.IsZero() {
		x.Persons = []uuid.UUID{by.User.UUID}
		return nil
	}
	const tries = 5 // a deletion during the reading moves users to earlier pages
	for try := 0; ; try++ {
		seen := map[uuid.UUID]bool{}
		x.Persons = nil
		total := -1
		stable := true
		for offset := 0; ; offset += maxCount {
			page, err := s.Health.Users(ctx, by.Team, offset, maxCount)
			if err != nil {
				return fmt.Errorf("list users: %w", err)
			}
			stable = stable && (total < 0 || total <= page.Total)
			total = page.Total
			for i := range page.Users {
				if id := page.Users[i].ID.UUID; !seen[id] {
					seen[id] = true
					x.Persons = append(x.Persons, id)
				}
			}
			if len(page.Users) < maxCount {
				break
			}
		}
		if stable {
			break
		}
		if try == tries {
			return fmt.Errorf("%w: list users: users are being deleted; try again", healthlab.Unavailable)
		}
	}
	if x.Since.IsZero() {
		return nil
	}
	gone, err := s.Health.Deletions().Since(ctx, by.Team, x.Since)
	if err != nil {
		return fmt.Errorf("list deleted users: %w", err)
	}
	for _, id := range gone {
		x.Deleted = append(x.Deleted, id.UUID)
	}
	return nil
}

// addToList adds an export to the team's list of exports, and deletes those that are too old or too many.
func (s *server) addToList(ctx context.Context, team healthlab.TeamID, x *export) error {
	type entry struct {
		ID uuid.UUID
		At time.Time
	}
	var all []entry
	if err := s.getJSON(ctx, team, "list", &all); err != nil && healthlab.KindOf(err) != healthlab.NotFound {
		return err
	}
	all = append(all, entry{x.ID, x.At})
	for len(all) > 0 && (len(all) > exportsKept || x.At.Sub(all[0].At) > exportKept) {
		if err := s.Exports.Delete(ctx, exportKey(team, all[0].ID.String())); err != nil {
			return fmt.Errorf("delete export: %w", err)
		}
		all = all[1:]
	}
	return s.putJSON(ctx, team, "list", all)
}

// exportOf reads an export. It returns NotFound if the export has expired, another API key began it, or the caller may
// act for one user only and the export is not of that user. An export by a key without an id can be read by every key
// of the team.
func (s *server) exportOf(ctx context.Context, by caller, id string) (*export, error) {
	if _, ok := parseUUID(id); !ok {
		return nil, healthlab.NotFound
	}
	var x export
	if err := s.getJSON(ctx, by.Team, id, &x); err != nil {
		return nil, err
	}
	if s.Now().Sub(x.At) > exportKept || x.Key != by.Key && x.Key != uuid.Nil || x.Bound != by.User && !by.User.IsZero() {
		return nil, healthlab.NotFound
	}
	return &x, nil
}

func noExport(w http.ResponseWriter) error {
	return refuse(w, httpapi.Refusal{Status: http.StatusNotFound, Msg: "export not found: its id is unknown, another client began it, it was deleted or replaced, or it is older than 7 days"})
}

type manifest struct {
	TransactionTime string         `json:"transactionTime"`
	Request         string         `json:"request"`
	RequiresToken   bool           `json:"requiresAccessToken"`
	Output          []manifestFile `json:"output"`
	Deleted         []manifestFile `json:"deleted,omitempty"`
	Error           []manifestFile `json:"error"`
}

type manifestFile struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// exportStatus answers with the manifest of an export, which lists the URLs of its files.
func (s *server) exportStatus(w http.ResponseWriter, r *http.Request, by caller) error {
	x, err := s.exportOf(r.Context(), by, r.PathValue("id"))
	if errors.Is(err, healthlab.NotFound) {
		return noExport(w)
	}
	if err != nil {
		return err
	}
	m := manifest{TransactionTime: instant(x.At), Request: x.Request, RequiresToken: true, Output: []manifestFile{}, Error: []manifestFile{}}
	at := func(kind string, n int) manifestFile {
		return manifestFile{kind, s.URL + "/$export-file/" + x.ID.String() + "/" + kind + "/" + strconv.Itoa(n)}
	}
	for _, k := range s.kinds() {
		if len(x.Types) > 0 && !slices.Contains(x.Types, k.name) {
			continue
		}
		for n := 0; n*shard < len(x.Persons); n++ {
			m.Output = append(m.Output, at(k.name, n))
		}
	}
	if len(x.Deleted) > 0 {
		f := at(deletedType, 0)
		f.Type = "Bundle"
		m.Deleted = []manifestFile{f}
	}
	removed, err := s.removedShards(r.Context(), by.Team, x)
	if err != nil {
		return err
	}
	for _, n := range removed {
		f := at(removedType, n)
		f.Type = "Bundle"
		m.Deleted = append(m.Deleted, f)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Expires", x.At.Add(exportKept).Format(http.TimeFormat))
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("send manifest: %w", err)
	}
	return nil
}

// deleteExport deletes the record of an export.
func (s *server) deleteExport(w http.ResponseWriter, r *http.Request, by caller) error {
	x, err := s.exportOf(r.Context(), by, r.PathValue("id"))
	if errors.Is(err, healthlab.NotFound) {
		return noExport(w)
	}
	if err == nil {
		err = s.Exports.Delete(r.Context(), exportKey(by.Team, x.ID.String()))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// exportFile answers with one file of an export: the resources of one type of at most shard persons, or bundles that
// delete resources. It leaves out persons who were deleted since the kick-off.
func (s *server) exportFile(w http.ResponseWriter, r *http.Request, by caller) error {
	may, err := s.rightsOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("type")
	gone := name == deletedType || name == removedType
	if !may.searches(name) && !gone || gone && !s.searchesAny(may) {
		return lacking(w, "system/"+name+".s")
	}
	x, err := s.exportOf(r.Context(), by, r.PathValue("id"))
	n, wrong := strconv.Atoi(r.PathValue("n"))
	known := gone || slices.ContainsFunc(s.kinds(), func(k kind) bool {
		return k.name == name && (x == nil || len(x.Types) == 0 || slices.Contains(x.Types, name))
	})
	if errors.Is(err, healthlab.NotFound) || err == nil && (wrong != nil || n < 0 || !known) {
		return noExport(w)
	}
	if err != nil {
		return err
	}
	ids := x.Persons
	if name == deletedType {
		ids = x.Deleted
	} else {
		ids = ids[min(n*shard, len(ids)):min((n+1)*shard, len(ids))]
	}
	for _, id := range ids {
		by.Concerns(healthlab.UserID{UUID: id})
	}
	w.Header().Set("Content-Type", ndjson)
	out := bufio.NewWriterSize(w, 64<<10)
	switch name {
	case deletedType:
		err = writeDeleted(out, ids)
	case removedType:
		err = s.writeRemoved(r.Context(), out, by.Team, x, may, ids)
	default:
		err = s.writeShard(r.Context(), out, by.Team, x, name, ids)
	}
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send file: %w", err)
	}
	return nil
}

func (s *server) writeShard(ctx context.Context, out *bufio.Writer, team healthlab.TeamID, x *export, name string, ids []uuid.UUID) error {
	l := &selection{types: []string{name}}
	l.since, l.interval, l.filters = x.Since, x.By, s.filtered(x, name)
	labs := map[string]bool{} // laboratories that were written, because persons share them
	for _, id := range ids {
		u, err := s.Health.User(ctx, team, healthlab.UserID{UUID: id})
		if healthlab.KindOf(err) == healthlab.NotFound {
			continue
		}
		if err != nil {
			return fmt.Errorf("read user: %w", err)
		}
		err = s.selectedResources(ctx, &u, l, func(kind string, res resource) error {
			if kind == "Organization" {
				if at := res.start().ID; labs[at] {
					return nil
				} else if strings.HasPrefix(at, labIDs) {
					labs[at] = true
				}
			}
			b, err := seal(res)
			if err != nil {
				return err
			}
			_, err = out.Write(append(b, '\n'))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeDeleted writes a bundle for each deleted person. The bundle deletes the Patient.
func writeDeleted(out *bufio.Writer, ids []uuid.UUID) error {
	for _, id := range ids {
		if err := writeDeletions(out, []string{"Patient/" + id.String()}); err != nil {
			return err
		}
	}
	return nil
}
