package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// hl7Lab has the addresses for the exchange with a laboratory that uses HL7.
type hl7Lab struct {
	target string // host:port or folder to which orders are sent; empty for none
	listen string // address that receives results over MLLP
}

func (l *hl7Lab) address() (string, bool) {
	host, port, err := net.SplitHostPort(l.target)
	return l.target, err == nil && host != "" && port != "" && !strings.ContainsRune(l.target, os.PathSeparator)
}

// laboratory returns the laboratory to which orders go: the HL7 one that the flags name, or else own, the simulated
// laboratory of the sandbox.
func (s *host) laboratory(ctx context.Context, own *sandbox.Lab) (exchange.LabBackend, error) {
	if s.hl7.target == "" {
		return own, nil
	}
	options := &hl7.Options{
		Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: strings.ToUpper(labSlug)},
		LabSlug: labSlug, ReviewTeam: s.team, Processing: "T", Log: s.log,
		// s.Orders is set when the service is built. The laboratory sends nothing before that.
		Documents: hl7.Reports(func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error {
			return s.Orders.Files().StoreReport(ctx, team, order, id, pdf)
		}),
		Insurance: func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (hl7.Insurance, error) {
			coverage, err := s.Orders.People().Insurance(ctx, team, id)
			return hl7.InsuranceOf(coverage), err
		},
	}
	if s.environment == healthlab.Production {
		options.Processing = "P"
	}
	var backend *hl7.Backend
	if address, ok := s.hl7.address(); ok {
		client := mllp.NewClient(address, nil)
		s.closers = append(s.closers, client.Close)
		backend = hl7.New(client, s.store.LabJournal(), options)
		results, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.hl7.listen)
		if err != nil {
			return nil, fmt.Errorf("-lab-hl7-listen: %w", err)
		}
		s.receiveResults = func(ctx context.Context) error {
			return mllp.NewServer(backend, &mllp.ServerOptions{Log: s.log}).Serve(ctx, results)
		}
	} else {
		out, in := filepath.Join(s.hl7.target, "orders"), filepath.Join(s.hl7.target, "results")
		if err := errors.Join(os.MkdirAll(out, 0o700), os.MkdirAll(in, 0o700)); err != nil {
			return nil, fmt.Errorf("-lab-hl7: %w", err)
		}
		folder := hl7.NewFolder(out, in, &hl7.FolderOptions{Every: time.Second, Log: s.log})
		backend = hl7.New(folder, s.store.LabJournal(), options)
		s.receiveResults = func(ctx context.Context) error { return folder.Run(ctx, backend.Receive) }
	}
	return backend, nil
}
