package measure

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/pprof/profile"
)

// Profile reads a profile from the address at which a process serves it.
func Profile(ctx context.Context, url string) (*profile.Profile, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // an open connection has goroutines
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	read, err := profile.Parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the profile %s: %w", url, err)
	}
	return read, nil
}
