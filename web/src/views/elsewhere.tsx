/** Ways to the programs beside the server, where it was told of them; they open apart. */
import { useResource } from "../state/answer";

interface Links {
  links: { title: string; url: string }[];
}

/** @param session links about it, instead of the run */
export function Elsewhere({ session }: { session?: string }) {
  const links = useResource<Links>("links", { session }).data?.links;
  if (!links?.length) return null;
  return (
    <span class="row spread">
      {!session && <span class="dim">Grafana</span>}
      {links.map((one) => (
        <a key={one.url} href={one.url} target="_blank" rel="noopener noreferrer">
          {one.title}
        </a>
      ))}
    </span>
  );
}
