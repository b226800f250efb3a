package personexport

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/healthlab-dev/healthlab"
)

// Archive is a completed export, from which [Archive.Write] makes the ZIP file. It must be used by one goroutine.
type Archive struct {
	s *Service
	j Job
}

// Open returns a completed export of a user. It returns the RuleErrors [RuleUserNotFound] and [RuleExportNotFound]
// (both NotFound), and [RuleNotCompleted] (Conflict).
func (s *Service) Open(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id JobID) (*Archive, error) {
	j, err := s.job(ctx, team, user, id)
	if err != nil {
		return nil, fmt.Errorf("open export: %w", err)
	}
	if j.Status != Completed {
		return nil, &healthlab.RuleError{Kind: healthlab.Conflict, Type: RuleNotCompleted,
			Msg: fmt.Sprintf("the status of the export is %s; only an export with the status %s has a ZIP file", j.Status, Completed)}
	}
	return &Archive{s, j}, nil
}

// manifest is the content of manifest.json, the first file in the ZIP file.
type manifest struct {
	ExportID    JobID            `json:"export_id"`
	UserID      healthlab.UserID `json:"user_id"`
	CreatedAt   healthlab.Time   `json:"created_at"`
	CompletedAt healthlab.Time   `json:"completed_at"`
	Files       []manifestFile   `json:"files"`
}

type manifestFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Write writes the ZIP file to w: first manifest.json, which lists the other files, then those files. It streams
// them, so memory does not grow with their size. After an error w may have received a part.
func (a *Archive) Write(ctx context.Context, w io.Writer) error {
	j, z := &a.j, zip.NewWriter(w)
	m := manifest{ExportID: j.ID, UserID: j.User, CreatedAt: healthlab.At(j.CreatedAt), CompletedAt: healthlab.At(j.CompletedAt), Files: []manifestFile{}}
	for i := range j.Files {
		if f := &j.Files[i]; !f.Absent {
			m.Files = append(m.Files, manifestFile{f.Name, f.Size})
		}
	}
	first, err := z.CreateHeader(&zip.FileHeader{Name: "manifest.json", Method: zip.Deflate, Modified: j.CompletedAt})
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	text := json.NewEncoder(first)
	text.SetIndent("", "  ")
	if err := text.Encode(m); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	for n := range j.Files {
		if err := a.add(ctx, z, n); err != nil {
			return fmt.Errorf("write export: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}

// add copies the nth file of the export into the ZIP file. Files are stored compressed, so add does not compress.
func (a *Archive) add(ctx context.Context, z *zip.Writer, n int) (err error) {
	f := &a.j.Files[n]
	if f.Absent {
		return nil
	}
	stored, err := a.s.blobs.Get(ctx, a.j.Team, a.j.User, a.j.Key(n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	to, err := z.CreateRaw(&zip.FileHeader{
		Name: f.Name, Method: zip.Deflate, Modified: a.j.CompletedAt, CRC32: f.CRC,
		CompressedSize64: uint64(f.Packed), UncompressedSize64: uint64(f.Size),
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(to, stored)
	return err
}
