package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/healthlab-dev/healthlab"
)

// Bucket is a [Place] in a bucket of a service with the S3 protocol. The host provides the client, with its credentials
// and region. The client needs to get, put and delete objects, and to list them for [Bucket.List], which a Store does
// not call. It is safe for concurrent use.
//
// An upload that a crash interrupted cannot be read, but may be charged for: the bucket should have a lifecycle rule
// that aborts incomplete multipart uploads after a day. Versioning should be off, because otherwise deleted files stay.
type Bucket struct {
	client *minio.Client
	name   string
	prefix string
}

var _ Place = (*Bucket)(nil)

// NewBucket returns a Place in an existing bucket. prefix precedes every name, such as "healthlab/"; it may be empty.
// No request is sent. It returns Invalid without a client or a name.
func NewBucket(client *minio.Client, name, prefix string) (*Bucket, error) {
	if client == nil || name == "" {
		return nil, fmt.Errorf("%w: client and bucket name must be set", healthlab.Invalid)
	}
	return &Bucket{client: client, name: name, prefix: prefix}, nil
}

// part is the largest number of bytes of a file that are in memory during an upload. A larger file is sent as several
// parts, a smaller one as one object.
const part = 8 << 20

// Write implements [Place]. It returns an error of content unchanged.
func (b *Bucket) Write(ctx context.Context, name string, content io.Reader) error {
	source := &noted{r: content, err: new(error)}
	var first bytes.Buffer
	n, err := io.CopyN(&first, source, part)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	body, size := io.Reader(&first), n
	if err == nil {
		body, size = io.MultiReader(&first, source), -1
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = b.client.PutObject(ctx, b.name, b.prefix+name, body, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: part,
	})
	if *source.err != nil {
		return *source.err
	}
	return serviceError(ctx, "write object", err)
}

// Open implements [Place]. It sends one request, because two could see different contents.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	body, _, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, serviceError(ctx, "open object", err)
	}
	return &object{body: body, ctx: ctx}, nil
}

// object is the content of an object of the bucket. Its Read converts errors of the service.
type object struct {
	body io.ReadCloser
	ctx  context.Context //nolint:containedctx // it lives as long as one reading
}

func (o *object) Read(b []byte) (int, error) {
	n, err := o.body.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = serviceError(o.ctx, "read object", err)
	}
	return n, err
}

func (o *object) Close() error { return o.body.Close() }

// Remove implements [Place].
func (b *Bucket) Remove(ctx context.Context, name string) error {
	err := serviceError(ctx, "remove object", b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
	if errors.Is(err, healthlab.NotFound) {
		return nil
	}
	return err
}

// List implements [Place].
func (b *Bucket) List(ctx context.Context, name func(string) error) error {
	listing, stop := context.WithCancel(ctx)
	defer stop()
	for o := range b.client.ListObjects(listing, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if o.Err != nil {
			return serviceError(ctx, "list objects", o.Err)
		}
		if err := name(strings.TrimPrefix(o.Key, b.prefix)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// serviceError converts an error of the S3 service; verb names the failed operation. It keeps only the error code,
// because the message may contain the name of the object.
func serviceError(ctx context.Context, verb string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch code := minio.ToErrorResponse(err).Code; code {
	case minio.NoSuchKey:
		return fmt.Errorf("%s: %w: %s", verb, healthlab.NotFound, code)
	case "":
		return fmt.Errorf("%s: %w: the object storage does not answer", verb, healthlab.Unavailable)
	case minio.AccessDenied, minio.NoSuchBucket:
		return fmt.Errorf("%s: the object storage refused the request: %s; check the credentials and the name of the bucket", verb, code)
	default:
		return fmt.Errorf("%s: %w: %s", verb, healthlab.Unavailable, code)
	}
}
