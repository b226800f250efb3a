package ocr

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// tesseract runs the program on one picture, with a page segmentation mode and languages, and returns the words.
func (e *Engine) tesseract(ctx context.Context, img *image.Gray, psm, langs string) ([]labreport.Word, error) {
	run, stop := context.WithTimeout(ctx, e.o.Timeout)
	defer stop()
	args := []string{"stdin", "stdout", "-l", langs, "--psm", psm, "--dpi", "300"}
	c := exec.CommandContext(run, e.path, append(args, "tsv")...) //nolint:gosec // the host names the program
	c.Env = []string{"OMP_THREAD_LIMIT=1", "LC_ALL=C"}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	c.Stdin = io.MultiReader(strings.NewReader(fmt.Sprintf("P5\n%d %d\n255\n", w, h)), bytes.NewReader(img.Pix[:w*h]))
	var out bytes.Buffer
	c.Stdout = &limited{&out, 16 << 20}
	c.WaitDelay = time.Second
	attributes(c)
	err := c.Start()
	if err == nil {
		lowerPriority(c.Process.Pid)
		err = c.Wait()
	}
	if err != nil {
		switch {
		case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, ctx.Err()
		case run.Err() != nil:
			return nil, fmt.Errorf("%w: OCR of the picture took longer than %s (Options.Timeout) or, with other runs, than %s (Options.PageTimeout)",
				healthlab.Exhausted, e.o.Timeout, e.o.PageTimeout)
		}
		return nil, fmt.Errorf("%w: tesseract cannot read the picture: %v", healthlab.Invalid, err)
	}
	return parseTSV(&out, float64(w), float64(h)), nil
}

// installed returns the supported report languages for which the program has data.
func (e *Engine) installed(ctx context.Context) map[string]string {
	args := []string{"--list-langs"}
	ctx, stop := context.WithTimeout(ctx, e.o.Timeout)
	defer stop()
	c := exec.CommandContext(ctx, e.path, args...) //nolint:gosec // the host names the program
	c.Env = []string{"LC_ALL=C"}
	c.WaitDelay = time.Second
	attributes(c)
	out, err := c.Output()
	if err != nil {
		return nil
	}
	have := map[string]string{}
	for line := range strings.Lines(string(out)) {
		for ours, theirs := range map[string]string{"de": "deu", "es": "spa", "fr": "fra"} {
			if strings.TrimSpace(line) == theirs {
				have[ours] = theirs
			}
		}
	}
	return have
}

// limited is a writer that fails after a number of bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return l.w.Write(b)
}

// parseTSV reads tesseract's table of words. The box of a word has the height of its line, so that words of a line are
// level.
func parseTSV(r io.Reader, w, h float64) []labreport.Word {
	type word struct {
		x, y, w, h float64
		line       string
		conf       float64
		text       string
	}
	var words []word
	lines := map[string][2]float64{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f := strings.Split(s.Text(), "\t")
		if len(f) < 12 || f[0] != "5" && f[0] != "4" {
			continue
		}
		var n [4]float64
		bad := false
		for i := range n {
			v, err := strconv.ParseFloat(f[6+i], 64)
			bad = bad || err != nil
			n[i] = v
		}
		if bad {
			continue
		}
		key := strings.Join(f[1:5], ".")
		if f[0] == "4" {
			lines[key] = [2]float64{n[1], n[3]}
			continue
		}
		conf, err := strconv.ParseFloat(f[10], 64)
		text := strings.TrimSpace(f[11])
		if err != nil || conf < 0 || text == "" {
			continue
		}
		words = append(words, word{n[0], n[1], n[2], n[3], key, conf / 100, text})
	}
	if len(words) == 0 {
		return nil
	}
	var hs []float64
	for _, v := range words {
		hs = append(hs, v.h)
	}
	slices.Sort(hs)
	typical := hs[len(hs)/2]
	out := make([]labreport.Word, 0, len(words))
	for _, v := range words {
		if v.h > 4*typical || v.w > 0.9*w && v.h > 2*typical {
			continue // dirt or a frame
		}
		y, height := v.y, v.h
		if l, ok := lines[v.line]; ok && l[1] <= 2.2*typical && l[1] >= v.h {
			y, height = l[0], l[1]
		} else if v.h < 0.8*typical {
			// A hyphen or point gets the height of a letter around its middle.
			y, height = v.y+v.h/2-typical/2, typical
		}
		out = append(out, labreport.Word{Text: v.text, Confidence: v.conf, Box: labreport.Box{X: v.x / w, Y: y / h, Width: v.w / w, Height: height / h}})
	}
	return out
}
