//go:build linux

package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	imageregistry "github.com/google/go-containerregistry/pkg/registry"
)

// serveRegistry serves the image registry. Layers are stored on disk, but manifests in memory: after a restart images
// have to be pushed again, which sends no layer twice.
func (c *cluster) serveRegistry(ctx context.Context) error {
	blobs := c.path("registry")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	server := &http.Server{
		Addr: registry,
		Handler: imageregistry.New(
			imageregistry.WithBlobHandler(imageregistry.NewDiskBlobHandler(blobs)),
			imageregistry.Logger(log.New(os.Stderr, "", log.LstdFlags))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return server.ListenAndServeTLS(c.cert("registry"), c.key("registry"))
}
