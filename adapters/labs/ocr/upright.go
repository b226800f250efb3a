package ocr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/draw"

	"github.com/healthlab-dev/healthlab/labreport"
)

// grey returns the picture in shades of grey, turned upright by its EXIF
// orientation.
func grey(img image.Image, orientation int) *image.Gray {
	b := img.Bounds()
	g, ok := img.(*image.Gray)
	if !ok || b.Min != (image.Point{}) {
		g = image.NewGray(image.Rect(0, 0, b.Dx(), b.Dy()))
		switch src := img.(type) {
		case *image.YCbCr:
			for y := range b.Dy() {
				copy(g.Pix[y*g.Stride:y*g.Stride+b.Dx()], src.Y[(y+b.Min.Y-src.Rect.Min.Y)*src.YStride+b.Min.X-src.Rect.Min.X:])
			}
		default:
			// Transparent parts become white, like paper.
			draw.Draw(g, g.Rect, image.White, image.Point{}, draw.Src)
			draw.Draw(g, g.Rect, img, b.Min, draw.Over)
		}
	}
	if orientation <= 1 {
		return g
	}
	w, h := g.Rect.Dx(), g.Rect.Dy()
	out := image.NewGray(uprightRect(w, h, orientation))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sx, sy := storedPoint(x, y, w, h, orientation)
			out.Pix[y*out.Stride+x] = g.Pix[sy*g.Stride+sx]
		}
	}
	return out
}

func uprightRect(w, h, orientation int) image.Rectangle {
	if orientation >= 5 {
		w, h = h, w
	}
	return image.Rect(0, 0, w, h)
}

// storedPoint returns the position in the stored picture, which has the size w by h, of the pixel at x, y of the
// upright one.
func storedPoint(x, y, w, h, orientation int) (int, int) {
	switch orientation {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, h - 1 - x
	case 7:
		return w - 1 - y, h - 1 - x
	case 8:
		return w - 1 - y, x
	}
	return x, y
}

// storedBox maps a box of the upright picture to the stored one, for EXIF orientations that are rotations.
func storedBox(b labreport.Box, orientation int) labreport.Box {
	switch orientation {
	case 3:
		b.X, b.Y = 1-b.X-b.Width, 1-b.Y-b.Height
	case 6:
		b = labreport.Box{X: b.Y, Y: 1 - b.X - b.Width, Width: b.Height, Height: b.Width}
	case 8:
		b = labreport.Box{X: 1 - b.Y - b.Height, Y: b.X, Width: b.Height, Height: b.Width}
	}
	return b
}

// orientation returns the EXIF orientation of a JPEG, 1 to 8; 1 if there is none.
func orientation(data []byte) int {
	for i := 2; i+4 <= len(data) && data[i] == 0xff; {
		size := int(binary.BigEndian.Uint16(data[i+2:]))
		if data[i+1] == 0xda || size < 2 || i+2+size > len(data) {
			return 1
		}
		if seg := data[i+4 : i+2+size]; data[i+1] == 0xe1 && bytes.HasPrefix(seg, []byte("Exif\x00\x00")) {
			if o, err := exifOrientation(seg[6:]); err == nil {
				return o
			}
			return 1
		}
		i += 2 + size
	}
	return 1
}

var errExif = errors.New("no orientation")

func exifOrientation(t []byte) (int, error) {
	if len(t) < 8 {
		return 0, errExif
	}
	var order binary.ByteOrder = binary.LittleEndian
	if t[0] == 'M' {
		order = binary.BigEndian
	}
	at := int(order.Uint32(t[4:]))
	if at < 0 || at+2 > len(t) {
		return 0, errExif
	}
	n := int(order.Uint16(t[at:]))
	for k := range n {
		e := at + 2 + 12*k
		if e+12 > len(t) {
			return 0, errExif
		}
		if order.Uint16(t[e:]) == 0x0112 {
			if o := int(order.Uint16(t[e+8:])); o >= 1 && o <= 8 {
				return o, nil
			}
			return 0, errExif
		}
	}
	return 0, errExif
}
