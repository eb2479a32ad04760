/** Elements of SVG pictures. */

/** A new element of an SVG picture. */
export function svgElement(name, attributes, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}
