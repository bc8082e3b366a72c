// Package sim is the world around the prefill and decode cores: wire, data plane, engines and
// crashes.
package sim
