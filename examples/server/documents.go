package main

import (
	"os"

	"github.com/healthlab-dev/healthlab/adapters/labs/pdfdoc"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/service"
)

// addFiles sets the store of files: in the folder of -files, encrypted with the keys of persons, or in memory.
func (s *host) addFiles(c *service.Config) (err error) {
	c.Sealer = s.sealer
	c.Files = s.store.blobs
	if s.filesPath != "" {
		place, err := blob.OpenDirectory(s.filesPath, nil)
		if err != nil {
			return err
		}
		if c.Files, err = blob.New(place, c.Sealer, &blob.Options{Keys: s.store.PersonKeys()}); err != nil {
			return err
		}
	}
	s.files = c.Files
	return nil
}

// printer returns the printer that makes the PDF documents of orders, with the fonts of the flags.
func (c *config) printer() (*pdfdoc.Printer, error) {
	var opts pdfdoc.Options
	for _, name := range c.fonts {
		font, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		opts.Fonts = append(opts.Fonts, font)
	}
	return pdfdoc.New(&opts)
}
