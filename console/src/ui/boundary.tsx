/** Shows a message in place of a page, or a part of one, that throws while it renders. */

import { Component, type ComponentChildren } from "preact";

interface BoundaryProps {
  /** The subject of the message. */
  what: string;
  remedy: string;
  /** The address of the page: another one resets the boundary. */
  at?: string;
  children: ComponentChildren;
}

interface BoundaryState {
  at: string | undefined;
  failed: boolean;
}

export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state = { at: this.props.at, failed: false };

  static override getDerivedStateFromProps({ at }: BoundaryProps, was: BoundaryState) {
    return at === was.at ? null : { at, failed: false };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
    this.setState({ failed: true });
  }

  override render() {
    const { what, remedy, children } = this.props;
    if (!this.state.failed) return children;
    return (
      <div class="refused" role="alert">
        <p>
          <b>{what} could not be displayed.</b>
        </p>
        <p class="quiet">{remedy}</p>
        <button type="button" onClick={() => this.setState({ failed: false })}>
          Try again
        </button>
      </div>
    );
  }
}
