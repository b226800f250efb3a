package main

import (
	"context"
	"os"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/blob"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/pdfdoc"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
)

// files is where files are kept: a folder, or memory.
func (s *service) files(seal healthlab.Sealer) (labreport.BlobStore, error) {
	if s.filesPath == "" {
		return s.store.blobs, nil
	}
	place, err := blob.OpenDirectory(s.filesPath, nil)
	if err != nil {
		return nil, err
	}
	return blob.New(place, seal)
}

// documents makes what prints the documents of orders.
func (s *service) documents(files orders.BlobStore, seal healthlab.Sealer) (*orders.Documents, error) {
	var opts pdfdoc.Options
	for _, name := range s.fonts {
		font, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		opts.Fonts = append(opts.Fonts, font)
	}
	printer, err := pdfdoc.New(&opts)
	if err != nil {
		return nil, err
	}
	return &orders.Documents{
		Printer: printer, Files: files, FormURL: s.url + httpapi.RequisitionFormPath, FormKeys: seal,
		TimeZone: func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (*time.Location, error) {
			u, err := s.health.User(ctx, team, user)
			return u.Location(), err
		},
	}, nil
}
