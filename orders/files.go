package orders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Files stores the files of orders: the reports of laboratories, and documents as they were first printed. It
// stores and finds nothing if no file store is configured ([Options].Files). It is safe for concurrent use.
type Files struct {
	orders Store // includes orders of deleted users
	users  people.Users
	blobs  BlobStore // nil if no file store is configured
}

const (
	// maxReportBytes is the highest size of a laboratory's report, in bytes.
	maxReportBytes = 20 << 20
	// maxReportID is the longest id of a laboratory's report, in bytes.
	maxReportID = 100
)

// fetch reads a file of an order.
func (f *Files) fetch(ctx context.Context, r *Record, key string) ([]byte, error) {
	content, err := f.blobs.Get(ctx, r.TeamID, r.UserID, key)
	if err != nil {
		return nil, fileError("read document", err)
	}
	b, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, fileError("read document", err)
	}
	return b, nil
}

func fileError(verb string, err error) error {
	// Other errors of a BlobStore become Unavailable, because their kinds mean nothing to the caller.
	if kind := healthlab.KindOf(err); kind == healthlab.NotFound || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s: %w: %v", verb, healthlab.Unavailable, err)
}

func reportKey(id OrderID, file string) string { return "orders/" + id.String() + "/lab/" + file }

// StoreReport stores a report that a laboratory printed, a PDF file. The report's id consists of letters, digits,
// hyphens and underscores and is unique in the order. The team can read the report once results name it (ReportFile in
// a message of package exchange). It may be called again with the same report.
//
// Invalid if pdf is no PDF file or is larger than 20 MB, or if the id is invalid; NotFound if the team has no such
// order. It stores nothing if the user is deleted.
func (f *Files) StoreReport(ctx context.Context, team healthlab.TeamID, order OrderID, id string, pdf []byte) error {
	var p healthlab.Problems
	if id == "" || len(id) > maxReportID || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		p.Add("file_id", fmt.Sprintf("must have 1 to %d characters: letters, digits, hyphens and underscores", maxReportID), "id")
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || len(pdf) > maxReportBytes {
		p.Add("file", fmt.Sprintf("must be a PDF file of at most %d bytes", maxReportBytes), "pdf")
	}
	if err := p.Err(); err != nil {
		return err
	}
	r, err := f.orders.Get(ctx, team, order)
	if err != nil {
		return fmt.Errorf("store report: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	alive, err := f.users.HasUser(ctx, team, r.UserID)
	if err != nil {
		return fmt.Errorf("store report: %w", err)
	}
	if f.blobs == nil || !alive {
		return nil
	}
	// The order names the file before the file is stored, so that every file is erased with its order.
	_, err = f.orders.Update(ctx, team, order, func(r *Record) ([]healthlab.Event, error) {
		if !slices.Contains(r.Files, id) {
			r.Files = append(slices.Clone(r.Files), id)
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("store report: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	if err := f.blobs.Put(ctx, r.TeamID, r.UserID, reportKey(order, id), bytes.NewReader(pdf)); err != nil {
		return fileError("store report", err)
	}
	return nil
}

// DropReport deletes a report that [Files.StoreReport] stored. It is a no-op if the order's present results name the
// report, and if the report does not exist.
func (f *Files) DropReport(ctx context.Context, team healthlab.TeamID, order OrderID, id string) error {
	if f.blobs == nil || id == "" {
		return nil
	}
	r, err := f.orders.Get(ctx, team, order)
	if err == nil && (r.ReportFile == id || !slices.Contains(r.Files, id)) {
		return nil
	}
	if err == nil {
		err = f.blobs.Delete(ctx, reportKey(order, id))
	}
	if err == nil {
		_, err = f.orders.Update(ctx, team, order, func(r *Record) ([]healthlab.Event, error) {
			r.Files = slices.DeleteFunc(slices.Clone(r.Files), func(file string) bool { return file == id })
			return nil, nil
		})
	}
	if err != nil && healthlab.KindOf(err) != healthlab.NotFound {
		return fmt.Errorf("delete report: %w", err)
	}
	return nil
}

// Forget deletes the files of a user's orders. Call it before the user is erased, because the erasure removes the
// orders, which have the names of the files. It may be called again after any error. Use it as
// [healthdata.Options.Forget].
func (f *Files) Forget(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	if f.blobs == nil {
		return nil
	}
	ids, err := f.orders.OfUser(ctx, team, user)
	if err != nil {
		return fmt.Errorf("forget documents: %w", err)
	}
	for _, id := range ids {
		r, err := f.orders.Get(ctx, team, id)
		if err != nil && !errors.Is(err, healthlab.NotFound) { // the key may be deleted: files whose names are in the order cannot be read either
			return fmt.Errorf("forget documents: %w", err)
		}
		keys := make([]string, 0, len(keptDocuments)+len(r.Files))
		for _, name := range keptDocuments {
			keys = append(keys, documentKey(id, name))
		}
		for _, file := range r.Files {
			keys = append(keys, reportKey(id, file))
		}
		for _, key := range keys {
			if err := f.blobs.Delete(ctx, key); err != nil {
				return fmt.Errorf("forget documents: %w", err)
			}
		}
	}
	return nil
}

// keptDocuments are the kinds of documents that are stored when they are first printed.
var keptDocuments = []string{"requisition", "abn"}

func documentKey(id OrderID, name string) string { return "orders/" + id.String() + "/" + name }

// Document returns a document of an order from [Files.StoreDocument]. NotFound if none is stored.
func (f *Files) Document(ctx context.Context, r *Record, name string) ([]byte, error) {
	if f.blobs == nil {
		return nil, rules.Missing(DocumentNotFound, "the service stores no files of orders")
	}
	return f.fetch(ctx, r, documentKey(r.ID, name))
}

// StoreDocument stores a document of an order as it was first printed: requisition or abn, else Invalid. It
// stores nothing for a deleted user.
func (f *Files) StoreDocument(ctx context.Context, r *Record, name string, pdf []byte) error {
	if !slices.Contains(keptDocuments, name) {
		return fmt.Errorf("%w: the kind of a document must be one of %s", healthlab.Invalid, strings.Join(keptDocuments, ", "))
	}
	alive, err := f.users.HasUser(ctx, r.TeamID, r.UserID)
	if err != nil {
		return fmt.Errorf("find user: %w", err)
	}
	if f.blobs == nil || !alive {
		return nil
	}
	if err := f.blobs.Put(ctx, r.TeamID, r.UserID, documentKey(r.ID, name), bytes.NewReader(pdf)); err != nil {
		return fileError("keep "+name, err)
	}
	return nil
}

// Report returns a report that the laboratory sent for an order. The id is the ReportFile of r, which is the
// report of its results, or one of the Files of r, which include superseded reports. NotFound for any other id.
func (f *Files) Report(ctx context.Context, r *Record, id string) ([]byte, error) {
	if f.blobs == nil || id == "" || id != r.ReportFile && !slices.Contains(r.Files, id) {
		return nil, rules.Missing(DocumentNotFound, "the laboratory sent no report as a file")
	}
	return f.fetch(ctx, r, reportKey(r.ID, id))
}
