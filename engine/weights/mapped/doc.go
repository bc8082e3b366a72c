// Package mapped opens files as bytes in memory, without reading them where the system can map.
// Only the readers of weights import it.
package mapped
