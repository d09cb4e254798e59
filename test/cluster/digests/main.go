// Command digests prints the digests of images in their registries, for config/manifests/pin.sh: a line with IMAGE and
// DIGEST for each.
//
// Usage: digests [--revision COMMIT] IMAGE...
//
// With --revision, the first image has to be built from that commit. Credentials are those of docker login.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/example/memcached-operator/test/cluster/images"
)

func main() {
	revision := flag.String("revision", "", "the commit that the first image has to be built from")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *revision, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, revision string, list []string) error {
	if len(list) == 0 {
		return errors.New("name an image")
	}
	if revision != "" {
		if err := images.CheckRevision(ctx, list[0], revision); err != nil {
			return err
		}
	}
	for _, image := range list {
		digest, err := images.Digest(ctx, image)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, image, digest); err != nil {
			return err
		}
	}
	return nil
}
