package ocr_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/ocr"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/labreport"
)

func engine(t testing.TB) *ocr.Engine {
	t.Helper()
	e, err := ocr.New(&ocr.Options{Readability: labreport.NewReader(nil).Readability, Timeout: time.Minute, PageTimeout: 4 * time.Minute}) // a busy machine is slow
	if errors.Is(err, healthlab.Unimplemented) && os.Getenv("CI") == "" {
		t.Skip("tesseract is not installed: pictures are not read in this run")
	}
	require.NoError(t, err)
	return e
}

var lines = []string{
	"Northfield Laboratory", "Patient: Amara Hartley", "DOB: 21 May 1980     Sex: Female", "Collected: 14 Mar 2025", "",
	"Test            Result   Units     Reference", "Glucose         112      mg/dL     70 - 99", "Creatinine      1.12     mg/dL     0.60 - 1.30",
	"Sodium          139      mmol/L    135 - 146", "Potassium       4.1      mmol/L    3.5 - 5.3", "Ferritin        18       ng/mL     38 - 380",
}

// sheet draws lines of print with columns; at times 4 it is a scan at about 200
// dots an inch. The zeros of the font are slashed, so that values here have none.
func sheet(times int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, 480*times, (40+18*len(lines))*times))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		panic(err)
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: 11 * float64(times), DPI: 72})
	if err != nil {
		panic(err)
	}
	d := font.Drawer{Dst: img, Src: image.Black, Face: face}
	for i, l := range lines {
		for at := 0; at < len(l); {
			end := strings.Index(l[at:], "  ")
			if end < 0 {
				end = len(l) - at
			}
			d.Dot = fixed.P((24+7*at)*times, (32+18*i)*times)
			d.DrawString(l[at : at+end])
			for at += end; at < len(l) && l[at] == ' '; at++ {
			}
		}
	}
	return img
}

func asPNG(t testing.TB, img image.Image) labreport.File {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return labreport.File{Type: "image/png", Data: b.Bytes()}
}

func read(t testing.TB, e *ocr.Engine, f labreport.File) (labreport.Data, labreport.Page) {
	t.Helper()
	var page labreport.Page
	require.NoError(t, e.Extract(t.Context(), f, func(p labreport.Page) error {
		page = p
		return nil
	}))
	d, reason := labreport.NewReader(nil).Read([]labreport.Page{page})
	require.Empty(t, reason)
	return d, page
}

func TestExtract_readsResultsOfAPicture(t *testing.T) {
	d, page := read(t, engine(t), asPNG(t, sheet(4)))
	require.True(t, page.Image)
	values := map[string]string{}
	for _, r := range d.Results {
		values[r.TestName] = r.Value
	}
	require.Equal(t, map[string]string{"Glucose": "112", "Creatinine": "1.12", "Sodium": "139", "Potassium": "4.1", "Ferritin": "18"}, values)
	box := d.Results[0].Evidence["value"].Box
	require.InDelta(t, (24+16*7)/480.0, box.X, 0.02)
	require.InDelta(t, (32+18*6-10)/float64(40+18*len(lines)), box.Y, 0.03)
}

// Light print on a dark ground, as screens show it at night, is read as surely as print on paper.
func TestExtract_readsLightPrintOnADarkGround(t *testing.T) {
	img := sheet(4)
	want, _ := read(t, engine(t), asPNG(t, img))
	for i, v := range img.Pix {
		img.Pix[i] = 235 - v/10*9
	}
	got, _ := read(t, engine(t), asPNG(t, img))
	require.Len(t, got.Results, len(want.Results))
	for i, r := range got.Results {
		require.Equal(t, want.Results[i].Value, r.Value)
		require.InDelta(t, want.Results[i].Evidence["value"].Confidence, r.Evidence["value"].Confidence, 0.1)
	}
}

// A picture that stands on its side or on its head is read, and the boxes are places of the picture as it is.
func TestExtract_readsPicturesThatAreNotUpright(t *testing.T) {
	e := engine(t)
	img := sheet(4)
	_, upright := read(t, e, asPNG(t, img))
	for quarter := 1; quarter <= 3; quarter++ {
		turned := image.NewGray(image.Rect(0, 0, img.Rect.Dy(), img.Rect.Dx()))
		for y := range img.Rect.Dy() {
			for x := range img.Rect.Dx() {
				turned.SetGray(img.Rect.Dy()-1-y, x, img.GrayAt(x, y))
			}
		}
		img = turned
		d, page := read(t, e, asPNG(t, img))
		require.Len(t, d.Results, 5, "%d quarters", quarter)
		require.Len(t, page.Words, len(upright.Words), "%d quarters", quarter)
		want := upright.Original(upright.Words[0].Box)
		for range quarter {
			want = labreport.Box{X: 1 - want.Y - want.Height, Y: want.X, Width: want.Height, Height: want.Width}
		}
		first := page.Original(page.Words[0].Box)
		require.InDelta(t, want.X, first.X, 0.02, "%d quarters", quarter)
		require.InDelta(t, want.Y, first.Y, 0.02, "%d quarters", quarter)
		require.InDelta(t, want.Width, first.Width, 0.02, "%d quarters", quarter)
	}
}

// A sheet that lies turned on a dark table is cut out, and the receipt still points
// at the place on the photo.
func TestExtract_cutsASheetOutOfAPhoto(t *testing.T) {
	flat := sheet(4)
	photo := image.NewRGBA(image.Rect(0, 0, flat.Rect.Dx()+400, flat.Rect.Dy()+400))
	draw.Draw(photo, photo.Rect, image.NewUniform(color.RGBA{60, 50, 40, 255}), image.Point{}, draw.Src)
	const slope = 0.03
	for y := range flat.Rect.Dy() {
		for x := range flat.Rect.Dx() {
			px, py := 200+x-int(slope*float64(y)), 160+y+int(slope*float64(x))
			v := float64(flat.GrayAt(x, y).Y) * (0.7 + 0.25*float64(x)/float64(flat.Rect.Dx()))
			photo.Set(px, py, color.RGBA{uint8(v), uint8(v * 0.97), uint8(v * 0.9), 255})
		}
	}
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, photo, &jpeg.Options{Quality: 85}))
	d, _ := read(t, engine(t), labreport.File{Type: "image/jpeg", Data: b.Bytes()})
	require.GreaterOrEqual(t, len(d.Results), 4)
	for _, r := range d.Results {
		if r.TestName != "Glucose" {
			continue
		}
		require.Equal(t, "112", r.Value)
		x, y := float64((24+16*7)*4), float64((32+18*6-6)*4)
		box := r.Evidence["value"].Box
		require.InDelta(t, (200+x-slope*y)/float64(photo.Rect.Dx()), box.X, 0.03)
		require.InDelta(t, (160+y+slope*x)/float64(photo.Rect.Dy()), box.Y+box.Height/2, 0.03)
		return
	}
	t.Fatal("no glucose")
}

func TestPage_emptyHasNoWords(t *testing.T) {
	e := engine(t)
	img := image.NewGray(image.Rect(0, 0, 800, 1000))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	p, err := e.Page(t.Context(), img)
	require.NoError(t, err)
	require.Empty(t, p.Words)
	_, reason := labreport.NewReader(nil).Read([]labreport.Page{p})
	require.Equal(t, labreport.LowQuality, reason)
}

// bombPNG declares a size that its data does not have.
func bombPNG(w, h uint32) []byte {
	head := make([]byte, 13)
	binary.BigEndian.PutUint32(head, w)
	binary.BigEndian.PutUint32(head[4:], h)
	head[8] = 8
	chunk := append([]byte("IHDR"), head...)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

func TestExtract_hostilePicturesAreRefused(t *testing.T) {
	e := engine(t)
	for name, c := range map[string]struct {
		f    labreport.File
		kind healthlab.ErrorKind
	}{
		"pixel bomb":     {labreport.File{Type: "image/png", Data: bombPNG(40000, 40000)}, healthlab.Exhausted},
		"one long line":  {labreport.File{Type: "image/png", Data: bombPNG(13000, 1)}, healthlab.Exhausted},
		"nothing inside": {labreport.File{Type: "image/png", Data: bombPNG(100, 100)}, healthlab.Invalid},
		"another type":   {labreport.File{Type: "image/jpeg", Data: bombPNG(100, 100)}, healthlab.Invalid},
		"empty":          {labreport.File{Type: "image/jpeg"}, healthlab.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := e.Extract(t.Context(), c.f, func(labreport.Page) error { return nil })
			require.ErrorIs(t, err, c.kind)
		})
	}
	// Damaged pictures end in words or in a fault, never in a crash.
	good := asPNG(t, sheet(1)).Data
	_, err := e.Check(t.Context(), labreport.File{Type: "image/png", Data: good[:len(good)/2]})
	require.ErrorIs(t, err, healthlab.Invalid, "a truncated picture is refused when it is uploaded")
	r := rand.New(rand.NewPCG(1, 9))
	for range prove.Counts(3, 6, 60) {
		data := bytes.Clone(good)
		for range 1 + r.IntN(6) {
			data[8+r.IntN(len(data)-8)] ^= 1 << r.IntN(8)
		}
		err := e.Extract(t.Context(), labreport.File{Type: "image/png", Data: data[:len(data)-r.IntN(40)]}, func(labreport.Page) error { return nil })
		if err != nil {
			require.True(t, errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Exhausted), "%v", err)
		}
	}
}

func TestNew_withoutTesseractIsUnimplemented(t *testing.T) {
	_, err := ocr.New(&ocr.Options{Command: "no-such-program-here"})
	require.ErrorIs(t, err, healthlab.Unimplemented)
}

func TestPage_stopsWithItsContext(t *testing.T) {
	e := engine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Page(ctx, sheet(2))
	require.ErrorIs(t, err, context.Canceled)
}

// A program that does not list its languages delays nothing: the page is read in
// the language that it was begun with.
func TestPage_readsWithoutAListOfLanguages(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "tesseract")
	require.NoError(t, os.WriteFile(silent, []byte("#!/bin/sh\n[ \"$1\" = --list-langs ] && exec sleep 60\ncat > /dev/null\nprintf '5\\t1\\t1\\t1\\t1\\t1\\t10\\t10\\t40\\t12\\t96\\tKreatinin\\n'\n"), 0o700))
	e, err := ocr.New(&ocr.Options{Command: silent, Timeout: time.Second, Language: func(labreport.Page) string { return "de" }})
	require.NoError(t, err)
	began := time.Now()
	page, err := e.Page(t.Context(), sheet(1))
	require.NoError(t, err)
	require.Equal(t, "Kreatinin", page.Words[0].Text)
	require.Less(t, time.Since(began), 30*time.Second)
}

// A run that takes too long ends the readings of its page; the best one so far is the answer.
func TestPage_timeoutReturnsTheBestReading(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "tesseract")
	require.NoError(t, os.WriteFile(slow, []byte("#!/bin/sh\ncase \"$*\" in *\"--psm 11\"*) exec sleep 60 ;; esac\ncat > /dev/null\nprintf '5\\t1\\t1\\t1\\t1\\t1\\t10\\t10\\t40\\t12\\t96\\tSodium\\n'\n"), 0o700))
	e, err := ocr.New(&ocr.Options{Command: slow, Timeout: 2 * time.Second})
	require.NoError(t, err)
	page, err := e.Page(t.Context(), sheet(1))
	require.NoError(t, err)
	require.Equal(t, "Sodium", page.Words[0].Text)
}

// Pictures that are cut off, empty or too large are refused before they are read.
func TestCheck_refusesTruncatedEmptyAndLargePictures(t *testing.T) {
	e := engine(t)
	good := asPNG(t, sheet(1))
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, sheet(1), nil))
	photo := labreport.File{Type: "image/jpeg", Data: b.Bytes()}
	for _, f := range []labreport.File{good, photo} {
		pages, err := e.Check(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, 1, pages)
		for _, part := range []int{1, 2, 10, 50, 90, 99} {
			_, err := e.Check(t.Context(), labreport.File{Type: f.Type, Data: f.Data[:len(f.Data)*part/100]})
			require.ErrorIs(t, err, healthlab.Invalid, "%s, %d %%", f.Type, part)
		}
	}
	for name, data := range map[string][]byte{"no width": bombPNG(0, 100), "no height": bombPNG(100, 0), "wrong sum": append(bytes.Clone(good.Data[:40]), good.Data[44:]...)} {
		_, err := e.Check(t.Context(), labreport.File{Type: "image/png", Data: data})
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	_, err := e.Check(t.Context(), labreport.File{Type: "image/png", Data: bombPNG(11_000, 11_000)})
	require.ErrorIs(t, err, healthlab.Exhausted)
}

// A page of a scan, at 300 dots an inch.
func BenchmarkScannedPage(b *testing.B) {
	e := engine(b)
	img := sheet(6)
	for b.Loop() {
		_, err := e.Page(b.Context(), img)
		require.NoError(b, err)
	}
}

// A number whose decimal point may be lost is read again at a higher resolution: a second
// reading with a point stands, and the first one is its alternative.
func TestPage_doubtfulNumberIsReadAgainEnlarged(t *testing.T) {
	// The program prints one word, at the same place of a picture of any size.
	const printed = `printf '4\t1\t1\t1\t1\t0\t%s\t%s\t%s\t%s\t-1\t\n5\t1\t1\t1\t1\t1\t%s\t%s\t%s\t%s\t96\t%s\n' `
	for name, c := range map[string]struct{ again, text, alternative string }{
		"point":          {"4.1", "4.1", "41"},
		"same":           {"41", "41", ""},
		"another number": {"47", "41", ""},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "tesseract")
			script := "#!/bin/sh\nread magic\nread w h\ncat >/dev/null\nat=\"$((w/8)) $((h/6)) $((w*3/40)) $((h/20))\"\n" +
				"case \"$*\" in *\"--psm 7\"*) text=" + c.again + " ;; *) text=41 ;; esac\n" + printed + "$at $at $text\n"
			require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
			e, err := ocr.New(&ocr.Options{Command: program, Readability: func(p labreport.Page) float64 { return float64(len(p.Words)) },
				DoubtfulNumbers: func(p labreport.Page) []labreport.Box { return []labreport.Box{p.Words[0].Box} }})
			require.NoError(t, err)
			img := image.NewGray(image.Rect(0, 0, 800, 600))
			draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
			draw.Draw(img, image.Rect(100, 100, 160, 130), image.Black, image.Point{}, draw.Src)
			page, err := e.Page(t.Context(), img)
			require.NoError(t, err)
			require.Len(t, page.Words, 1)
			require.Equal(t, c.text, page.Words[0].Text)
			require.Equal(t, c.alternative, page.Words[0].Alternative)
		})
	}
}
