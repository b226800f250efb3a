package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// addLake adds the periodic export of all teams' data as Parquet files to the folder or bucket of -lake, if it is set.
func (s *host) addLake(c *service.Config) (err error) {
	if s.lake == "" {
		return nil
	}
	if s.lakeEvery <= 0 {
		return errors.New("-lake-every must be above 0")
	}
	place, err := s.lakePlace()
	if err != nil {
		return fmt.Errorf("-lake: %w", err)
	}
	s.loops = append(s.loops, func(all *service.Service) (service.Loop, error) {
		key, err := all.Key("lake pseudonyms")
		if err != nil {
			return service.Loop{}, err
		}
		opts := &lake.Options{Every: s.lakeEvery, Accessed: all.Accessed("lake", "data", "export_to_lake"), Log: c.Log}
		if all.Orders != nil {
			opts.Orders = all.Orders
		}
		exporter, err := lake.New(place, all.Health, s.allTeams, key, opts)
		if err != nil {
			return service.Loop{}, err
		}
		return service.Loop{Name: "lake", Run: exporter.Run}, nil
	})
	return nil
}

func (s *host) lakePlace() (lake.Place, error) {
	address, bucket := strings.CutPrefix(s.lake, "s3://")
	if !bucket {
		place, err := blob.OpenDirectory(s.lake, &blob.DirectoryOptions{Plain: true})
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, place.Close)
		return place, nil
	}
	endpoint, path, _ := strings.Cut(address, "/")
	name, prefix, _ := strings.Cut(path, "/")
	if endpoint == "" || name == "" || s.lakeKey == "" {
		return nil, errors.New("a bucket must be s3://HOST/BUCKET/PREFIX, with -lake-credentials")
	}
	if prefix != "" {
		prefix = strings.TrimSuffix(prefix, "/") + "/"
	}
	text, err := os.ReadFile(s.lakeKey)
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(string(text))
	if len(lines) != 2 {
		return nil, errors.New("-lake-credentials must have two lines: the access key and the secret key")
	}
	client, err := minio.New(endpoint, &minio.Options{Creds: credentials.NewStaticV4(lines[0], lines[1], ""), Secure: true})
	if err != nil {
		return nil, err
	}
	return blob.NewBucket(client, name, prefix)
}

// allTeams returns the ids of the organisation's teams.
func (s *host) allTeams(ctx context.Context) ([]healthlab.TeamID, error) {
	const page = 100
	var out []healthlab.TeamID
	q := organisation.Query{Org: organisationOf(s.team), N: page}
	for {
		teams, err := s.Organisations.Teams(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range teams {
			out = append(out, t.ID)
		}
		if len(teams) < page {
			return out, nil
		}
		q.After = teams[len(teams)-1].ID
	}
}
